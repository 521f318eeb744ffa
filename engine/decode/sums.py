"""The two sums behind every probability and entropy, in float64 over a vocabulary of float32 scores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

PART = 12_288  # entries worked on at a time; in float64 still below what the C library maps page by page
LEFT = 1e-3  # of a sum that something is taken off: thirteen digits are right then
MOST_FALL = 30.0  # of the largest score, for sums to be moved


class Sums(NamedTuple):
    """Over tokens whose weight is exp(score - top); `top` is a score near the largest.

    total     sum of weight; a token's probability is its weight over this
    weighted  sum of weight times (score - top)
    """

    total: float
    weighted: float


def sums_of(scores: NDArray[np.float32], top: float) -> Sums:
    """Of these scores (S,), of which none is more than MOST_FALL above `top`: exp overflows at no temperature."""
    total = weighted = 0.0
    for part in parts_of(scores.size):
        below = np.subtract(scores[part], top, dtype=np.float64)
        weights = np.exp(below)
        total += float(weights.sum())
        # Not `weights @ below`: that wakes BLAS threads, which cost more than the whole row.
        weighted += float(np.multiply(weights, below, out=below).sum())  # a weight of 0 adds 0
    return Sums(total, weighted)


def sums_moved(
    before: Sums, tops: tuple[float, float], old: NDArray[np.float32], new: NDArray[np.float32]
) -> Sums | None:
    """`before` once the scores `old` are `new`; `tops` are the largest of all scores before and after.

    None where too little of the old sums is left to have their precision.
    """
    fall = tops[0] - tops[1]
    if fall > MOST_FALL:
        return None
    scale = float(np.exp(fall))
    gone, come = sums_of(old, tops[1]), sums_of(new, tops[1])
    whole = scale * before.total
    total = whole - gone.total + come.total
    if total < LEFT * whole:
        return None
    return Sums(total, scale * (before.weighted + before.total * fall) - gone.weighted + come.weighted)


def parts_of(size: int) -> Iterator[slice]:
    """A row in parts: what is computed on the way to a sum stays near the processor."""
    return (slice(start, start + PART) for start in range(0, size, PART))
