"""Taking one token out of a distribution, in a way that can be drawn on a bar.

Tokens are laid out on [0, 1) by falling probability, equal ones by rising id; the token whose interval
holds u is taken. The intervals are sums in float64, which may end a hair below 1: the last token with
any width reaches up to 1, so that no u is left over and no token of probability 0 is ever taken.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.config import SamplingParams
from engine.decode.distribution import Distribution, distribution, ranked
from engine.errors import UnknownToken
from engine.records import Draw, DrawMode


class Interval(NamedTuple):
    """A token and its part of [0, 1)."""

    token_id: int
    low: float
    high: float


def draw_token(scores: Tensor, raw_logits: Tensor, params: SamplingParams, *, u: float | None) -> Draw:
    """Take the token at u from the final scores (V,); greedy needs no u."""
    final, raw = distribution(scores.numpy()), distribution(raw_logits.numpy())
    if params.is_greedy:
        return describe_draw("greedy", None, whole_interval(final), final, raw)
    assert u is not None, "a draw that is not greedy needs a uniform number"
    return describe_draw("inverse_cdf", u, interval_at(final, u), final, raw)


def describe_draw(
    mode: DrawMode,
    u: float | None,
    drawn: Interval,
    final: Distribution,
    raw: Distribution,
    *,
    forced: int | None = None,
) -> Draw:
    """What a record says about a draw. `forced` replaces the drawn token and leaves the draw itself as it was."""
    token_id = drawn.token_id if forced is None else forced
    return Draw(
        mode=mode if forced is None else "forced",
        u=u,
        drawn_id=drawn.token_id,
        token_id=token_id,
        low=drawn.low,
        high=drawn.high,
        raw_prob=raw.prob_of(token_id),
        final_prob=final.prob_of(token_id),
        raw_rank=rank_of(raw, token_id),
    )


def whole_interval(final: Distribution) -> Interval:
    """The likeliest token, lowest id on a tie, with all of [0, 1): what greedy takes."""
    return Interval(int(final.ids[final.order[0]]), 0.0, 1.0)


def interval_at(final: Distribution, u: float) -> Interval:
    """The token whose interval holds u: low <= u < high."""
    assert 0.0 <= u < 1.0, f"u must be in [0, 1), got {u}"
    order, ends = _layout(final, final.order)
    if u >= ends[-1]:  # hardly ever: it lies beyond the likeliest thousand
        order, ends = _layout(final, ranked(final.scores, final.kept))
    place = int(np.searchsorted(ends, u, side="right"))  # the first interval that ends above u
    assert place < order.size, f"no interval holds {u}"
    return _interval(final, order, ends, place)


def interval_of(final: Distribution, token_id: int) -> Interval:
    """The interval of one token that was not cut."""
    order, ends = _layout(final, ranked(final.scores, final.kept))
    place = int(np.flatnonzero(final.ids[order] == token_id)[0])
    return _interval(final, order, ends, place)


def multinomial(scores: Tensor, generator: torch.Generator) -> int:
    """The token `generate` would draw from these final scores (V,) with this generator."""
    probs = torch.softmax(scores[None], dim=-1)  # (1, V) float32, as generate does
    return int(torch.multinomial(probs, num_samples=1, generator=generator))


def rank_of(raw: Distribution, token_id: int) -> int:
    """1 for the likeliest token; equal scores rank by id. A token without a finite score ranks behind all others."""
    place = int(np.searchsorted(raw.ids, token_id))
    if place == raw.kept or raw.ids[place] != token_id:
        return raw.kept + 1
    score = raw.scores[place]
    return 1 + int(np.count_nonzero(raw.scores > score)) + int(np.count_nonzero(raw.scores[:place] == score))


def require_token(token_id: int, vocab_size: int) -> None:
    """Refuse an id the model has no score for."""
    if not 0 <= token_id < vocab_size:
        raise UnknownToken(f"There is no token {token_id}; this model's ids run from 0 to {vocab_size - 1}.")


def _layout(final: Distribution, order: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The first tokens by falling probability, and where each one's interval ends."""
    ends = np.minimum(np.cumsum(final.probs[order]), 1.0)
    if order.size == final.kept:
        ends[np.searchsorted(ends, ends[-1], side="left") :] = 1.0  # from the last interval with any width on
    return order, ends


def _interval(final: Distribution, order: NDArray[np.int64], ends: NDArray[np.float64], place: int) -> Interval:
    low = float(ends[place - 1]) if place else 0.0
    return Interval(int(final.ids[order[place]]), low, float(ends[place]))
