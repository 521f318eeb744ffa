"""Clocks and memory of this process: the numbers that are asked of the system.

On CUDA a clock means nothing until the device has finished, so whoever reads one calls `synchronise` first.
"""

from __future__ import annotations

import mmap
import os
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TypeVar

import psutil
import torch

_process = psutil.Process()

T = TypeVar("T")


def now_ms() -> float:
    """A clock that only goes forward, in ms."""
    return time.perf_counter_ns() / 1e6


@dataclass(slots=True)
class OwnTime:
    """How long work in pieces was at work itself: what others do between two pieces does not count."""

    ms: float = 0.0

    def over(self, pieces: Generator[None, None, T]) -> Generator[None, None, T]:
        """The same pieces, timed."""
        with closing(pieces):
            while True:
                began = now_ms()
                try:
                    next(pieces)
                except StopIteration as done:
                    value: T = done.value
                    return value
                finally:
                    self.ms += now_ms() - began
                yield


def synchronise(device: torch.device) -> None:
    """Wait for work that was queued on a CUDA device; nothing to wait for on CPU."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def process_bytes() -> int | None:
    """Resident set of this process. It shrinks late: the C library keeps freed memory for a while.

    None where it cannot be read: that takes a file descriptor, and a step must not fail for want of an instrument.
    """
    try:
        return _resident() if sys.platform == "linux" else int(_process.memory_info().rss)
    except (OSError, psutil.Error):
        return None


def _resident() -> int:
    """As psutil reads it, in a tenth of a millisecond less behind a forward, when its code is in no cache."""
    file = os.open("/proc/self/statm", os.O_RDONLY)
    try:
        return int(os.read(file, 256).split()[1]) * mmap.PAGESIZE
    finally:
        os.close(file)


def device_allocated_bytes(device: torch.device) -> int | None:
    """Bytes that PyTorch's CUDA allocator has handed out; None on CPU."""
    return torch.cuda.memory_allocated(device) if device.type == "cuda" else None


def unique_bytes(tensors: Sequence[torch.Tensor]) -> int:
    """Bytes of all distinct storages: a tied embedding counts once."""
    storages = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}
    return sum(storages.values())
