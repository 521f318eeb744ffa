"""What this process has done for all its visitors: sums that only grow, and the last minutes for a chart.

It counts and never keeps: no token, no text and no name of a session gets here.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.records import StepRecord

RECENT = 2_000  # steps kept for the class page
BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64)
WAITS_S = (0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


@dataclass(frozen=True, slots=True)
class Seen:
    """One step: when it was done, how many shared its forward, how long it waited for its turn."""

    at: float
    batch_size: int
    wait_s: float


class Tally:
    """How many values lay at or below each bound, and their sum."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self._counts = [0] * (len(bounds) + 1)  # the last: above every bound
        self.sum = 0.0

    def add(self, value: float) -> None:
        """Count one value."""
        self._counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def cumulative(self) -> list[tuple[float, int]]:
        """(bound, values at or below it); the last bound is infinite."""
        total, rows = 0, []
        for bound, count in zip((*self.bounds, float("inf")), self._counts, strict=True):
            total += count
            rows.append((bound, total))
        return rows


class Meter:
    """Counted from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.tokens = 0
        self.evictions = 0
        self.batch_sizes = Tally(BATCH_SIZES)
        self.waits_s = Tally(WAITS_S)
        self._lock = threading.Lock()
        self._recent: deque[Seen] = deque(maxlen=RECENT)

    def stepped(self, record: StepRecord) -> None:
        """A token was drawn for somebody."""
        wait_s = record.timing.wait_ms / 1000 if record.timing else 0.0
        with self._lock:
            self.tokens += len(record.emitted_ids)
            self.batch_sizes.add(record.batch_size)
            self.waits_s.add(wait_s)
            self._recent.append(Seen(self.clock(), record.batch_size, wait_s))

    def evicted(self) -> None:
        """A session gave its tensors back, to be rebuilt when it is touched."""
        with self._lock:
            self.evictions += 1

    def recent(self, seconds: float) -> list[Seen]:
        """Steps of the last while, oldest first."""
        since = self.clock() - seconds
        with self._lock:
            return [seen for seen in self._recent if seen.at >= since]
