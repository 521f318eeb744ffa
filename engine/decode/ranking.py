"""The likeliest tokens in order, without putting the whole vocabulary in order.

Letters in shapes: S scores, R places in order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

GROUPS = 4  # times as many groups as places wanted: few more than those are then found


class Ranking(NamedTuple):
    """Where the largest of S scores are.

    order  (R,) their places, largest first, equal ones in rising order
    floor  every score outside `order` is at most this, and all those within are above it; -inf where none is outside
    """

    order: NDArray[np.int64]
    floor: np.float32


def rank(scores: NDArray[np.float32], count: int) -> Ranking:
    """The `count` largest of `scores` (S,), and what is found on the way: never fewer than asked for."""
    floor = _reached_by(scores, count)
    if floor == -np.inf:
        return Ranking(_ordered(scores, np.arange(scores.size)), floor)
    found = np.flatnonzero(scores >= floor)  # with all that tie with the last one, so that ties go by place
    return Ranking(_ordered(scores, found), np.nextafter(floor, np.float32(-np.inf)))


def rank_again(scores: NDArray[np.float32], pool: NDArray[np.int64], floor: np.float32) -> Ranking:
    """The ranking within a pool of places, some perhaps twice, where every score outside it is at most `floor`."""
    found = np.sort(pool[scores[pool] > floor])
    if found.size:
        found = found[np.concatenate(([True], found[1:] != found[:-1]))]
    return Ranking(_ordered(scores, found), floor)


def _ordered(scores: NDArray[np.float32], places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Places that rise, by falling score; equal ones stay as they are."""
    return places[np.argsort(-scores[places], kind="stable")]


def _reached_by(scores: NDArray[np.float32], count: int) -> np.float32:
    """A score that at least `count` scores reach, and few more; -inf where that cannot be told cheaply.

    The scores are dealt into groups. As many groups as are wanted have a largest score of at least this.
    """
    groups = GROUPS * count
    deep = scores.size // groups
    if deep < 2:
        return np.float32(-np.inf)
    largest = scores[: deep * groups].reshape(deep, groups).max(axis=0)  # (groups,)
    return np.float32(np.partition(largest, groups - count)[groups - count])
