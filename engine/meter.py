"""What the engine has done so far, for a page that shows it and a monitor that asks: counts, waits, bytes.

No text and no token of anybody is in here.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass

RECENT = 256  # forwards that are remembered one by one


@dataclass(frozen=True, slots=True)
class EngineHealth:
    """Whether the engine answers.

    alive            its thread is running
    heartbeat_age_s  since it last began a turn or, idle, looked for one (once a second); it grows while a forward hangs
    busy             a turn is under way
    waiting          requests that are not done
    """

    alive: bool
    heartbeat_age_s: float
    busy: bool
    waiting: int

    def is_stuck(self, after_s: float) -> bool:
        """True where the thread is gone, or has been in one turn for longer than `after_s`."""
        return not self.alive or self.heartbeat_age_s > after_s


@dataclass(frozen=True, slots=True)
class DecodeForward:
    """One forward of decode steps.

    at_ms         when it was over, on the clock of measure.now_ms
    batch_size    sessions that shared it
    longest_wait_ms, mean_wait_ms  from asking to its start, over those sessions
    """

    at_ms: float
    batch_size: int
    longest_wait_ms: float
    mean_wait_ms: float


@dataclass(frozen=True, slots=True)
class EngineCounters:
    """Totals since the start, what is held now, and the latest forwards.

    decode_tokens, prefills  tokens drawn by decode steps, prompts prefilled
    reused_tokens   prompt tokens that were copied from a shared prompt
    rebuilt_tokens  tokens prefilled again because a cache had been released
    failures        requests that ended in an error
    evictions       caches dropped to stay within budget, or for want of memory
    wait_ms         sum over decode steps, from asking to the start of the forward
    batch_sizes     (sessions that shared a forward, how many such forwards), ascending
    kv_live_bytes, kv_reserved_bytes  of all sessions, after the latest step or work of each
    prefix_bytes    of shared prompts
    """

    sessions: int
    waiting: int
    decode_tokens: int
    prefills: int
    reused_tokens: int
    rebuilt_tokens: int
    failures: int
    evictions: int
    wait_ms: float
    batch_sizes: tuple[tuple[int, int], ...]
    recent: tuple[DecodeForward, ...]
    kv_live_bytes: int
    kv_reserved_bytes: int
    prefix_bytes: int


class Meter:
    """Counts on the engine thread, is read from any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._totals: Counter[str] = Counter()
        self._wait_ms = 0.0
        self._batch_sizes: Counter[int] = Counter()
        self._recent: deque[DecodeForward] = deque(maxlen=RECENT)

    def add(self, **amounts: int) -> None:
        """Add to totals by the names that EngineCounters gives them."""
        with self._lock:
            self._totals.update(amounts)

    def forward(self, at_ms: float, waits_ms: Sequence[float]) -> None:
        """One forward of decode steps is done; one wait per session that shared it and got its token."""
        if not waits_ms:
            return
        size, total = len(waits_ms), sum(waits_ms)
        with self._lock:
            self._totals["decode_tokens"] += size
            self._wait_ms += total
            self._batch_sizes[size] += 1
            self._recent.append(DecodeForward(at_ms, size, max(waits_ms), total / size))

    def read(
        self, *, sessions: int, waiting: int, kv_live_bytes: int, kv_reserved_bytes: int, prefix_bytes: int
    ) -> EngineCounters:
        """The counters now, beside what others hold."""
        with self._lock:
            return EngineCounters(
                sessions=sessions,
                waiting=waiting,
                decode_tokens=self._totals["decode_tokens"],
                prefills=self._totals["prefills"],
                reused_tokens=self._totals["reused_tokens"],
                rebuilt_tokens=self._totals["rebuilt_tokens"],
                failures=self._totals["failures"],
                evictions=self._totals["evictions"],
                wait_ms=self._wait_ms,
                batch_sizes=tuple(sorted(self._batch_sizes.items())),
                recent=tuple(self._recent),
                kv_live_bytes=kv_live_bytes,
                kv_reserved_bytes=kv_reserved_bytes,
                prefix_bytes=prefix_bytes,
            )
