"""Whether the model is there and its engine alive, in words for a health check and for the host.

The engine says itself when it last showed a sign of life (LLMEngine.health), so nothing is asked of its thread: a
forward that hangs cannot hold the answer up. What is added here is what the engine cannot say: that there is none yet.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from explorer.engines.pool import EnginePool, Loading

if TYPE_CHECKING:
    from engine.serving.counters import EngineHealth

PATIENCE_S = 60.0  # a chunk of a long prompt on a busy machine takes seconds, never a minute
SPOKEN_S = 5.0  # a turn that takes longer is worth a word


@dataclass(frozen=True, slots=True)
class HealthReport:
    """One look at the engine.

    heartbeat_age_s  since its last sign of life; an idle engine gives one every second
    """

    is_well: bool
    words: str
    heartbeat_age_s: float = 0.0


class Health:
    """Looks at the default model's engine. Never waits for it."""

    def __init__(self, pool: EnginePool, *, patience_s: float = PATIENCE_S) -> None:
        self._pool = pool
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._loading: Loading | None = None

    def look(self) -> HealthReport:
        """How the engine is. A model that is not there is asked for; one whose thread has ended is replaced."""
        with self._lock:
            before, loading = self._loading, self._pool.request()
            self._pool.leave(loading)
            self._loading = loading
        if _has_failed(before) or _has_failed(loading):
            return HealthReport(False, "engine: the model could not be loaded")
        if not loading.future.done():
            return HealthReport(True, f"engine: loading, {loading.fraction:.0%}")
        return self._report(loading.future.result().health())

    def _report(self, health: EngineHealth) -> HealthReport:
        age = health.heartbeat_age_s
        if not health.alive:
            return HealthReport(False, "engine: stopped", age)
        words = f"engine: no sign of life for {age:.0f} s" if age >= SPOKEN_S else "engine: well"
        return HealthReport(not health.is_stuck(self._patience_s), words, age)


def _has_failed(loading: Loading | None) -> bool:
    return loading is not None and loading.future.done() and loading.future.exception() is not None
