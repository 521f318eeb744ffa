"""Arrays as long as the vocabulary, used again from step to step.

A fresh one comes from the system page by page, and the page faults of a step can take longer than all its sums.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

SHORTEST = 4_096  # entries; below it an array is cheap

_Kind = tuple[int, np.dtype[Any]]  # room for so many entries, of this type


class _Shelf(threading.local):
    """One thread's arrays: those that are free, and by their addresses those in use; None outside `reused`."""

    def __init__(self) -> None:
        self.free: dict[_Kind, list[NDArray[Any]]] = {}
        self.used: dict[int, NDArray[Any]] | None = None


_shelf = _Shelf()


@contextmanager
def reused() -> Iterator[None]:
    """What `empty` makes within this context is used again after it, so nothing that holds it may leave."""
    _shelf.used = {}
    try:
        yield
    finally:
        for array in _shelf.used.values():
            _put_by(array)
        _shelf.used = None


def empty(size: int, dtype: DTypeLike) -> NDArray[Any]:
    """An array (size,) to be filled."""
    if size < SHORTEST or _shelf.used is None:
        return np.empty(size, dtype)
    room = 1 << (size - 1).bit_length()  # few kinds, whatever number of tokens a stage keeps
    free = _shelf.free.get((room, np.dtype(dtype)))
    whole = free.pop() if free else np.empty(room, dtype)
    _shelf.used[id(whole)] = whole
    return whole[:size]


def done_with(array: NDArray[Any]) -> None:
    """`array` came from `empty` and is not needed any more: the next one may be the same."""
    if _shelf.used is not None and (whole := _shelf.used.pop(id(array.base), None)) is not None:
        _put_by(whole)


def _put_by(whole: NDArray[Any]) -> None:
    _shelf.free.setdefault((whole.size, whole.dtype), []).append(whole)
