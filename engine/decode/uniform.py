"""The one uniform number behind a draw.

It is keyed by (seed, step) and nothing else: not by the batch, the device, or how often somebody
looked. Rewinding to a step and drawing again gives the same number, because there is no stream to advance.
"""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

_DOUBLE_BITS = 53  # bits of a float64 below its leading one, so every value is exact and below 1


class _Own(threading.local):
    """A thread's generator, told what to be before every number: a new one asks the system for a seed it never uses."""

    def __init__(self) -> None:
        self.philox = np.random.Philox(key=0)


_own = _Own()


def uniform(seed: int, step: int) -> float:
    """A number in [0, 1): the top 53 bits of Philox-4x64-10's first word.

    The key is the seed. numpy raises the counter before it makes a block, so step n reads the block of counter n + 1.
    """
    _own.philox.state = {
        "bit_generator": "Philox",
        "state": {"counter": _words(step, 4), "key": _words(seed, 2)},
        "buffer": _words(0, 4),
        "buffer_pos": 4,  # empty: the next number comes from a new block
        "has_uint32": 0,
        "uinteger": 0,
    }
    word = _own.philox.random_raw()
    return float(int(word) >> (64 - _DOUBLE_BITS)) * 2.0**-_DOUBLE_BITS


def _words(number: int, count: int) -> NDArray[np.uint64]:
    """A whole number as 64-bit words, the lowest first."""
    return np.array([number >> 64 * place & 0xFFFF_FFFF_FFFF_FFFF for place in range(count)], dtype=np.uint64)
