"""The likeliest tokens in order, without putting the whole vocabulary in order.

Letters in shapes: S scores, R places in order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Ranking(NamedTuple):
    """Where the largest of S scores are.

    order  (R,) their places, largest first, equal ones in rising order
    floor  every score outside `order` is at most this, and all those within are above it; -inf where none is outside
    """

    order: NDArray[np.int64]
    floor: np.float32


def rank(scores: NDArray[np.float32], count: int, *, rising: NDArray[np.float32] | None = None) -> Ranking:
    """The `count` largest of `scores` (S,), and all that tie with the last of them.

    rising  the scores in order, where somebody has put them so
    """
    if count >= scores.size:
        return Ranking(_ordered(scores, np.arange(scores.size)), np.float32(-np.inf))
    last = (np.partition(scores, -count) if rising is None else rising)[-count]
    with np.errstate(over="ignore"):  # below the smallest number there is -inf, and that is right
        floor = np.nextafter(last, np.float32(-np.inf))
    return Ranking(_ordered(scores, np.flatnonzero(scores >= last)), floor)


def rank_again(scores: NDArray[np.float32], pool: NDArray[np.int64], floor: np.float32) -> Ranking:
    """The ranking within a pool of places, some perhaps twice, where every score outside it is at most `floor`."""
    found = np.sort(pool[scores[pool] > floor])
    if found.size:
        found = found[np.concatenate(([True], found[1:] != found[:-1]))]
    return Ranking(_ordered(scores, found), floor)


def _ordered(scores: NDArray[np.float32], places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Places that rise, by falling score; equal ones stay as they are."""
    return places[np.argsort(-scores[places], kind="stable")]
