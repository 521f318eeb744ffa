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
from engine.decode.distribution import Distribution, of_row
from engine.errors import UnknownToken
from engine.records import Draw, DrawMode

FAR = 4_096  # likeliest tokens whose intervals are added up before everybody's


class Interval(NamedTuple):
    """A token and its part of [0, 1)."""

    token_id: int
    low: float
    high: float


def draw_token(scores: Tensor, raw_logits: Tensor, params: SamplingParams, *, u: float | None) -> Draw:
    """Take the token at u from the final scores (V,); greedy needs no u."""
    final, raw = (of_row(row.numpy()) for row in (scores, raw_logits))
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
    return Interval(int(final.ids_at(final.ranking.order[:1])[0]), 0.0, 1.0)


def interval_at(final: Distribution, u: float) -> Interval:
    """The token whose interval holds u: low <= u < high."""
    assert 0.0 <= u < 1.0, f"u must be in [0, 1), got {u}"
    order = final.ranking.order
    ends = np.cumsum(final.probs_at(order))
    if order.size < final.kept and u >= ends[-1]:  # behind the ranking, as a rule not far
        falling = final.in_order()[::-1]
        for count in (FAR, final.kept):
            ends = np.cumsum(final.probs_for(falling[:count]))
            if u < ends[-1]:
                break
    if ends.size == final.kept:
        ends = _closed(ends)
    number = int(np.searchsorted(ends, u, side="right"))  # the first interval that ends above u
    place = order[number] if number < order.size else final.place_in_order(number)
    low = float(ends[number - 1]) if number else 0.0
    return Interval(int(final.ids_at(np.array([place]))[0]), low, min(1.0, float(ends[number])))


def interval_of(final: Distribution, token_id: int) -> Interval:
    """The interval of one token that was not cut."""
    place = final.place_of(token_id)
    assert place is not None, f"token {token_id} was cut"
    score = final.scores[place]
    before = final.scores > score
    before[:place] |= final.scores[:place] == score
    low = float(final.probs_at(np.flatnonzero(before)).sum())
    return Interval(token_id, low, min(1.0, low + final.prob_of(token_id)))


def multinomial(scores: Tensor, generator: torch.Generator) -> int:
    """The token `generate` would draw from these final scores (V,) with this generator."""
    probs = torch.softmax(scores[None], dim=-1)  # (1, V) float32, as generate does
    return int(torch.multinomial(probs, num_samples=1, generator=generator))


def rank_of(raw: Distribution, token_id: int) -> int:
    """1 for the likeliest token; equal scores rank by id. A token without a finite score ranks behind all others."""
    place = raw.place_of(token_id)
    if place is None:
        return raw.kept + 1
    score = raw.scores[place]
    above = raw.kept - int(np.searchsorted(raw.in_order(), score, side="right"))
    return 1 + above + int(np.count_nonzero(raw.scores[:place] == score))


def require_token(token_id: int, vocab_size: int) -> None:
    """Refuse an id the model has no score for."""
    if not 0 <= token_id < vocab_size:
        raise UnknownToken(f"There is no token {token_id}; this model's ids run from 0 to {vocab_size - 1}.")


def _closed(ends: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ends of intervals that together reach 1: the last one with any width takes what rounding has left over."""
    ends = np.minimum(ends, 1.0)
    ends[np.searchsorted(ends, ends[-1], side="left") :] = 1.0
    return ends
