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

SLICES = 4_096  # of the tokens behind the ranking


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
    if order.size == final.kept:
        return _interval(final, order, _closed(ends, 1.0), u)
    if u < ends[-1]:
        return _interval(final, order, np.minimum(ends, 1.0), u)
    slices = _slices(final)
    mass = np.bincount(slices, weights=final.probs_at(slice(None)), minlength=SLICES + 1)
    mass[0] = 0.0  # the ranking
    if not mass.any():
        return _interval(final, order, _closed(ends, 1.0), u)
    edges = _closed(ends[-1] + np.cumsum(mass), 1.0)
    found = int(np.searchsorted(edges, u, side="right"))
    start, end = float(edges[found - 1]), float(edges[found])
    within = np.flatnonzero(slices == found)
    within = within[np.argsort(-final.scores[within], kind="stable")]
    return _interval(final, within, _closed(start + np.cumsum(final.probs_at(within)), end), u, start)


def _slices(final: Distribution) -> NDArray[np.intp]:
    """The tokens behind the ranking dealt into slices by falling score, from 1 on; those of the ranking are in 0.

    So a draw that lies there puts one slice in order, and not the vocabulary.
    """
    floor = float(final.ranking.floor)
    scale = SLICES / ((floor - float(final.scores.min())) or 1.0)
    below = (floor - final.scores.astype(np.float64)) * scale
    slices = 1 + below.clip(0, SLICES - 1).astype(np.intp)
    slices[final.ranking.order] = 0
    return slices


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
    return 1 + int(np.count_nonzero(raw.scores > score)) + int(np.count_nonzero(raw.scores[:place] == score))


def require_token(token_id: int, vocab_size: int) -> None:
    """Refuse an id the model has no score for."""
    if not 0 <= token_id < vocab_size:
        raise UnknownToken(f"There is no token {token_id}; this model's ids run from 0 to {vocab_size - 1}.")


def _closed(ends: NDArray[np.float64], limit: float) -> NDArray[np.float64]:
    """Ends of intervals that together reach `limit`: the last one with any width takes what rounding has left over."""
    ends = np.minimum(ends, limit)
    ends[np.searchsorted(ends, ends[-1], side="left") :] = limit
    return ends


def _interval(
    final: Distribution, order: NDArray[np.int64], ends: NDArray[np.float64], u: float, start: float = 0.0
) -> Interval:
    """The interval that holds u, of tokens in this order from `start` on."""
    place = int(np.searchsorted(ends, u, side="right"))  # the first interval that ends above u
    assert place < order.size, f"no interval holds {u}"
    low = float(ends[place - 1]) if place else start
    return Interval(int(final.ids_at(order[place : place + 1])[0]), low, float(ends[place]))
