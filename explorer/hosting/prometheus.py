"""The class in numbers for Prometheus, on a port of its own that only this machine can reach.

Everything is read when it is asked for, from the engine's own counters. No number carries a session's name: labels
would grow with every visitor.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from engine.serving.counters import EngineCounters
from explorer.hosting.health import Health
from explorer.hosting.leases import Registry
from explorer.hosting.waiting_line import WaitingLine

log = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64)
INFINITE = float("inf")


class Served(Protocol):
    """What the numbers are read from: the tabs, the line of those who wait, and the engines."""

    tabs: Registry[Any]
    waiting_line: WaitingLine
    health: Health

    def counters(self) -> EngineCounters:
        """What all engines have done and hold."""
        ...


class ClassCollector(Collector):
    """Reads everything at every scrape."""

    def __init__(self, served: Served) -> None:
        self._served = served

    def describe(self) -> list[Metric]:
        """Nothing ahead of time: describing by collecting would ask for the model when the server starts."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Every number of this moment."""
        there, counters = self._served, self._served.counters()
        yield from _gauges(
            ("loupe_sessions", "Tabs that take up a place.", there.tabs.in_use()),
            ("loupe_sessions_known", "Tabs with a recipe, asleep or not.", len(there.tabs)),
            ("loupe_runs", "Decode sessions in the engine.", counters.sessions),
            ("loupe_waiting", "Visitors in line before a full class.", len(there.waiting_line)),
            ("loupe_requests_waiting", "Requests that the engine has not done yet.", counters.waiting),
            ("loupe_kv_bytes", "Allocated for keys and values of all sessions.", counters.kv_reserved_bytes),
            ("loupe_kv_live_bytes", "Of these, those of tokens held.", counters.kv_live_bytes),
            ("loupe_prefix_bytes", "Held of shared prompts.", counters.prefix_bytes),
        )
        yield from _totals(counters)
        yield from _histograms(counters)
        report = there.health.look()
        yield from _gauges(
            ("loupe_engine_up", "1 while the engine answers or loads.", int(report.is_well)),
            (
                "loupe_engine_heartbeat_age_seconds",
                "Since the engine's last sign of life; about 1 while it is idle.",
                report.heartbeat_age_s,
            ),
        )


def registry_of(served: Served) -> CollectorRegistry:
    """A registry of its own: the library's global one says more about the process than a scrape needs."""
    registry = CollectorRegistry()
    registry.register(ClassCollector(served))
    return registry


def serve(served: Served, port: int) -> None:
    """Start answering on 127.0.0.1. A port that is taken costs the numbers, not the class."""
    try:
        start_http_server(port, addr=LOOPBACK, registry=registry_of(served))
    except OSError as error:
        log.error("no metrics: port %d of %s cannot be had (%s)", port, LOOPBACK, error)


def _gauges(*rows: tuple[str, str, float]) -> Iterator[Metric]:
    for name, words, value in rows:
        yield GaugeMetricFamily(name, words, value=value)


def _totals(counters: EngineCounters) -> Iterator[Metric]:
    for name, words, value in (
        ("loupe_tokens", "Tokens drawn.", counters.decode_tokens + counters.prefills),
        ("loupe_prefills", "Prompts prefilled.", counters.prefills),
        ("loupe_reused_tokens", "Prompt tokens copied from a shared prompt.", counters.reused_tokens),
        ("loupe_rebuilt_tokens", "Tokens prefilled again for released caches.", counters.rebuilt_tokens),
        ("loupe_evictions", "Caches dropped for want of room, rebuilt on touch.", counters.evictions),
        ("loupe_releases", "Caches dropped because nobody used them.", counters.releases),
        ("loupe_failures", "Requests that ended in an error.", counters.failures),
    ):
        yield CounterMetricFamily(name, words, value=value)


def _histograms(counters: EngineCounters) -> Iterator[Metric]:
    sizes = counters.batch_sizes
    by_size = [(bound, sum(n for size, n in sizes if size <= bound)) for bound in (*BATCH_SIZES, INFINITE)]
    yield HistogramMetricFamily(
        "loupe_forward_batch_size",
        "Sessions that shared a decode forward.",
        buckets=_buckets(by_size),
        sum_value=sum(size * n for size, n in sizes),
    )
    waits = [(bound_ms / 1e3, count) for bound_ms, count in counters.waits]
    yield HistogramMetricFamily(
        "loupe_step_wait_seconds",
        "Time a step waited for its turn.",
        buckets=_buckets(waits),
        sum_value=counters.wait_ms / 1e3,
    )


def _buckets(rows: Iterable[tuple[float, int]]) -> list[tuple[str, float]]:
    return [("+Inf" if bound == INFINITE else f"{bound:g}", float(count)) for bound, count in rows]
