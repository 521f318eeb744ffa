"""Rows of scores as long as the vocabulary, used again from step to step.

A fresh one comes from the system page by page, and the page faults of a step can take longer than all its sums.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

SHORTEST = 4_096  # scores; below it a row is cheap


class _Shelf(threading.local):
    """One thread's rows: those that are free, by their room, and those in use; None outside `reused`."""

    def __init__(self) -> None:
        self.free: defaultdict[int, list[NDArray[np.float32]]] = defaultdict(list)
        self.used: list[NDArray[np.float32]] | None = None


_shelf = _Shelf()


@contextmanager
def reused() -> Iterator[None]:
    """What `empty` makes within this context is used again after it, so nothing that holds it may leave."""
    _shelf.used = []
    try:
        yield
    finally:
        for row in _shelf.used:
            _shelf.free[row.size].append(row)
        _shelf.used = None


def empty(size: int) -> NDArray[np.float32]:
    """A row (size,) to be filled."""
    if size < SHORTEST or _shelf.used is None:
        return np.empty(size, np.float32)
    room = 1 << (size - 1).bit_length()  # few kinds, whatever number of tokens a stage keeps
    free = _shelf.free[room]
    row = free.pop() if free else np.empty(room, np.float32)
    _shelf.used.append(row)
    return row[:size]
