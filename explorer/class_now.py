"""A class at one moment, in sums and means: what its host sees, and nothing that anybody typed or drew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from explorer.health import Report
from explorer.meter import Seen

if TYPE_CHECKING:
    from explorer.runtime import Runtime

SPAN_S = 300.0
BINS = 30  # of ten seconds each
LATELY_S = 60.0


@dataclass(frozen=True, slots=True)
class ClassNow:
    """One look at everybody.

    tokens_per_s, batch_size, wait_p95_s  of the last minute
    batch_sizes, waits_s                  means of ten seconds each over five minutes, oldest first; 0 where none
    """

    in_use: int
    asleep: int
    in_line: int
    kv_bytes: int
    tokens: int
    evictions: int
    tokens_per_s: float
    batch_size: float
    wait_p95_s: float
    batch_sizes: tuple[float, ...]
    waits_s: tuple[float, ...]
    engine: Report


def class_now(there: Runtime) -> ClassNow:
    """Look at everybody."""
    meter, now = there.meter, there.meter.clock()
    seen = meter.recent(SPAN_S)
    lately = [one for one in seen if one.at >= now - LATELY_S]
    in_use = there.tabs.in_use()
    return ClassNow(
        in_use=in_use,
        asleep=max(0, len(there.tabs) - in_use),
        in_line=len(there.door),
        kv_bytes=there.kv_bytes(),
        tokens=meter.tokens,
        evictions=meter.evictions,
        tokens_per_s=len(lately) / LATELY_S,
        batch_size=_mean([one.batch_size for one in lately]),
        wait_p95_s=percentile([one.wait_s for one in lately], 95),
        batch_sizes=_binned(seen, now, [one.batch_size for one in seen]),
        waits_s=_binned(seen, now, [one.wait_s for one in seen]),
        engine=there.health.look(),
    )


def percentile(values: Sequence[float], percent: int) -> float:
    """The smallest value that so many percent of all do not exceed; 0 of none."""
    if not values:
        return 0.0
    ranked = sorted(values)
    return ranked[max(0, -(-len(ranked) * percent // 100) - 1)]  # rounded up


def _binned(seen: Sequence[Seen], now: float, values: Sequence[float]) -> tuple[float, ...]:
    bins: list[list[float]] = [[] for _ in range(BINS)]
    for one, value in zip(seen, values, strict=True):
        age = int((now - one.at) / (SPAN_S / BINS))
        bins[BINS - 1 - min(age, BINS - 1)].append(value)
    return tuple(_mean(values) for values in bins)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
