"""A class at one moment: what its host sees. Sums and means of everybody, and the text of those who share theirs.

Every number is the engine's own count; what a tab is and who waits in line, the page's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.serving.counters import DecodeForward
from explorer.hosting.health import HealthReport
from explorer.operations.share_with_host import SharedText, shared_text

if TYPE_CHECKING:
    from explorer.hosting.runtime import Runtime

SPAN_S = 300.0
BINS = 30  # of ten seconds each
LATELY_S = 60.0


@dataclass(frozen=True, slots=True)
class ClassNow:
    """One look at everybody.

    runs                                  sessions in the engine: of tabs in use and of those asleep
    kv_bytes                              allocated for keys and values, those of prefills, studies and checks included
    prefix_bytes                          of prompts kept for the next who opens the same
    tokens                                drawn, the first of each prefill included
    evictions, releases                   caches dropped for want of room; because nobody used them
    tokens_per_s, batch_size, wait_p95_s  of the last minute
    batch_sizes, waits_s                  means of ten seconds each over five minutes, oldest first; 0 where none
    shared                                texts whose students share them, in the order of sharing
    """

    in_use: int
    asleep: int
    in_line: int
    runs: int
    kv_bytes: int
    prefix_bytes: int
    tokens: int
    evictions: int
    releases: int
    tokens_per_s: float
    batch_size: float
    wait_p95_s: float
    batch_sizes: tuple[float, ...]
    waits_s: tuple[float, ...]
    engine: HealthReport
    shared: tuple[SharedText, ...] = ()


def class_now(there: Runtime) -> ClassNow:
    """Look at everybody."""
    counters = there.counters()
    seen = _since(counters.recent, counters.at_ms, SPAN_S)
    lately = _since(seen, counters.at_ms, LATELY_S)
    in_use = there.tabs.in_use()
    return ClassNow(
        in_use=in_use,
        asleep=max(0, len(there.tabs) - in_use),
        in_line=len(there.waiting_line),
        runs=counters.sessions,
        kv_bytes=counters.kv_reserved_bytes,
        prefix_bytes=counters.prefix_bytes,
        tokens=counters.decode_tokens + counters.prefills,
        evictions=counters.evictions,
        releases=counters.releases,
        tokens_per_s=sum(done.batch_size for done in lately) / LATELY_S,
        batch_size=_mean([done.batch_size for done in lately]),
        wait_p95_s=percentile([wait for done in lately for wait in done.waits_ms], 95) / 1e3,
        batch_sizes=_binned(seen, counters.at_ms, lambda done: [done.batch_size]),
        waits_s=_binned(seen, counters.at_ms, lambda done: [wait / 1e3 for wait in done.waits_ms]),
        engine=there.health.look(),
        shared=_shared(there),
    )


def _shared(there: Runtime) -> tuple[SharedText, ...]:
    found = [text for tab in there.tabs.owned() if (text := shared_text(tab.workspace)) is not None]
    return tuple(sorted(found, key=lambda text: text.number))


def _since(forwards: Sequence[DecodeForward], now_ms: float, seconds: float) -> list[DecodeForward]:
    return [done for done in forwards if done.at_ms >= now_ms - 1e3 * seconds]


def percentile(values: Sequence[float], percent: int) -> float:
    """The smallest value that so many percent of all do not exceed; 0 of none."""
    if not values:
        return 0.0
    ranked = sorted(values)
    return ranked[max(0, -(-len(ranked) * percent // 100) - 1)]  # rounded up


def _binned(
    seen: Sequence[DecodeForward], now_ms: float, values: Callable[[DecodeForward], Sequence[float]]
) -> tuple[float, ...]:
    bins: list[list[float]] = [[] for _ in range(BINS)]
    for done in seen:
        age = int((now_ms - done.at_ms) / (1e3 * SPAN_S / BINS))
        bins[BINS - 1 - min(age, BINS - 1)].extend(values(done))
    return tuple(_mean(held) for held in bins)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
