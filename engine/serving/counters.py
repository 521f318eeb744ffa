"""What the engine has done so far, for a page that shows it and a monitor that asks: counts, waits, bytes.

No text and no token of anybody is in here.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import accumulate
from math import inf

RECENT = 4_096  # forwards that are remembered one by one: minutes of a full class
WAIT_BOUNDS_MS = (5.0, 20.0, 50.0, 100.0, 250.0, 500.0, 1_000.0, 2_500.0, 5_000.0)


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

    at_ms     when it was over, on the clock of measure.now_ms
    waits_ms  what others took of the time since it was asked for, one for each session that shared it
    """

    at_ms: float
    waits_ms: tuple[float, ...]

    @property
    def batch_size(self) -> int:
        """Sessions that shared it."""
        return len(self.waits_ms)


@dataclass(frozen=True, slots=True)
class EngineCounters:
    """Totals since the start, what is held now, and the latest forwards.

    at_ms           when they were read, on the clock of measure.now_ms
    decode_tokens, prefills  tokens drawn by decode steps, prompts prefilled (each draws a token too)
    reused_tokens   prompt tokens that were copied from a shared prompt
    rebuilt_tokens  tokens prefilled again because a cache had been released
    recovered_tokens  tokens copied from a shared prompt, for the same reason
    failures        requests that ended in an error
    evictions       caches dropped to stay within budget, or for want of memory
    releases        caches dropped because their owner does not need them for now
    wait_ms         sum over decode steps: what others took of the time since each was asked for
    waits           (bound in ms, decode steps that waited no longer than that), ascending, the last bound infinite
    batch_sizes     (sessions that shared a forward, how many such forwards), ascending
    kv_live_bytes, kv_reserved_bytes  of all sessions, after the latest step or work of each, and of studies and
                    checks under way
    prefix_bytes    of shared prompts
    """

    at_ms: float
    sessions: int
    waiting: int
    decode_tokens: int
    prefills: int
    reused_tokens: int
    rebuilt_tokens: int
    recovered_tokens: int
    failures: int
    evictions: int
    releases: int
    wait_ms: float
    waits: tuple[tuple[float, int], ...]
    batch_sizes: tuple[tuple[int, int], ...]
    recent: tuple[DecodeForward, ...]
    kv_live_bytes: int
    kv_reserved_bytes: int
    prefix_bytes: int


def add_up(parts: Sequence[EngineCounters]) -> EngineCounters:
    """The counters of several engines of one process as if they were one; zeros of none."""
    sizes: Counter[int] = Counter()
    waits = dict.fromkeys((*WAIT_BOUNDS_MS, inf), 0)
    for part in parts:
        sizes.update(dict(part.batch_sizes))
        for bound, count in part.waits:
            waits[bound] += count
    summed: dict[str, float] = {
        known.name: sum(getattr(part, known.name) for part in parts)
        for known in fields(EngineCounters)
        if known.name not in ("at_ms", "batch_sizes", "waits", "recent")
    }
    return EngineCounters(
        at_ms=max((part.at_ms for part in parts), default=0.0),
        batch_sizes=tuple(sorted(sizes.items())),
        waits=tuple(waits.items()),
        recent=tuple(sorted((done for part in parts for done in part.recent), key=lambda done: done.at_ms)),
        **summed,  # type: ignore[arg-type]
    )


class Meter:
    """Counts on the engine thread, is read from any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._totals: Counter[str] = Counter()
        self._wait_ms = 0.0
        self._batch_sizes: Counter[int] = Counter()
        self._waits = [0] * (len(WAIT_BOUNDS_MS) + 1)  # by bound; the last: above every bound
        self._recent: deque[DecodeForward] = deque(maxlen=RECENT)

    def add(self, **amounts: int) -> None:
        """Add to totals by the names that EngineCounters gives them."""
        with self._lock:
            self._totals.update(amounts)

    def forward(self, at_ms: float, waits_ms: Sequence[float]) -> None:
        """One forward of decode steps is done; one wait per session that shared it and got its token."""
        if not waits_ms:
            return
        done = DecodeForward(at_ms, tuple(waits_ms))
        with self._lock:
            self._totals["decode_tokens"] += done.batch_size
            self._wait_ms += sum(waits_ms)
            self._batch_sizes[done.batch_size] += 1
            for wait_ms in waits_ms:
                self._waits[bisect_left(WAIT_BOUNDS_MS, wait_ms)] += 1
            self._recent.append(done)

    def read(
        self,
        at_ms: float,
        *,
        sessions: int,
        waiting: int,
        kv_live_bytes: int,
        kv_reserved_bytes: int,
        prefix_bytes: int,
    ) -> EngineCounters:
        """The counters now, beside what others hold."""
        with self._lock:
            return EngineCounters(
                at_ms=at_ms,
                sessions=sessions,
                waiting=waiting,
                decode_tokens=self._totals["decode_tokens"],
                prefills=self._totals["prefills"],
                reused_tokens=self._totals["reused_tokens"],
                rebuilt_tokens=self._totals["rebuilt_tokens"],
                recovered_tokens=self._totals["recovered_tokens"],
                failures=self._totals["failures"],
                evictions=self._totals["evictions"],
                releases=self._totals["releases"],
                wait_ms=self._wait_ms,
                waits=tuple(zip((*WAIT_BOUNDS_MS, inf), accumulate(self._waits), strict=True)),
                batch_sizes=tuple(sorted(self._batch_sizes.items())),
                recent=tuple(self._recent),
                kv_live_bytes=kv_live_bytes,
                kv_reserved_bytes=kv_reserved_bytes,
                prefix_bytes=prefix_bytes,
            )
