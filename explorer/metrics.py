"""The class in numbers for Prometheus, on a port of its own that only this machine can reach.

Everything is read when it is asked for. No number carries a session's name: labels would grow with every visitor.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from explorer.meter import Tally

if TYPE_CHECKING:
    from explorer.runtime import Runtime

log = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"


class ClassCollector(Collector):
    """Reads a runtime at every scrape."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def describe(self) -> list[Metric]:
        """Nothing ahead of time: describing by collecting would ask for the model when the server starts."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Every number of this moment."""
        there, meter = self._runtime, self._runtime.meter
        yield GaugeMetricFamily("loupe_sessions", "Tabs that take up a place.", value=there.tabs.in_use())
        yield GaugeMetricFamily("loupe_sessions_known", "Sessions with a recipe, asleep or not.", value=len(there.tabs))
        yield GaugeMetricFamily("loupe_waiting", "Visitors in line before a full class.", value=len(there.door))
        yield GaugeMetricFamily("loupe_kv_bytes", "Keys and values held by all sessions.", value=there.kv_bytes())
        yield CounterMetricFamily("loupe_tokens", "Tokens drawn.", value=meter.tokens)
        yield CounterMetricFamily("loupe_evictions", "Caches freed, to be rebuilt on touch.", value=meter.evictions)
        yield _histogram("loupe_step_batch_size", "Sessions that shared a step's forward.", meter.batch_sizes)
        yield _histogram("loupe_step_wait_seconds", "Time a step waited for its turn.", meter.waits_s)
        report = there.health.look()
        yield GaugeMetricFamily("loupe_engine_up", "1 while the engine answers or loads.", value=int(report.is_well))
        yield GaugeMetricFamily(
            "loupe_engine_heartbeat_age_seconds", "Age of the engine's oldest unanswered question.",
            value=report.heartbeat_age_s,
        )  # fmt: skip


def registry_of(runtime: Runtime) -> CollectorRegistry:
    """A registry of its own: the library's global one says more about the process than a scrape needs."""
    registry = CollectorRegistry()
    registry.register(ClassCollector(runtime))
    return registry


def serve(runtime: Runtime, port: int) -> None:
    """Start answering on 127.0.0.1. A port that is taken costs the numbers, not the class."""
    try:
        start_http_server(port, addr=LOOPBACK, registry=registry_of(runtime))
    except OSError as error:
        log.error("no metrics: port %d of %s cannot be had (%s)", port, LOOPBACK, error)


def _histogram(name: str, help_text: str, tally: Tally) -> HistogramMetricFamily:
    rows = tally.cumulative()
    buckets = [("+Inf" if bound == float("inf") else f"{bound:g}", float(count)) for bound, count in rows]
    return HistogramMetricFamily(name, help_text, buckets=buckets, sum_value=tally.sum)
