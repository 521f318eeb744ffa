"""Whether the engine answers: a question to its thread, and how long the answer has taken.

A thread that is alive may still hang in a forward, and one that has nothing to do shows no sign of life. So it
is asked for nothing at all, now and then, in the order of all other requests.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass

from engine.errors import EngineStopped
from explorer import bridge
from explorer.engine_pool import EnginePool, Loading

PATIENCE_S = 60.0  # a chunk of a long prompt on a busy machine takes seconds, never a minute


@dataclass(frozen=True, slots=True)
class Report:
    """One look at the engine.

    heartbeat_age_s  how long the oldest unanswered question waits; 0 where all are answered
    """

    is_well: bool
    words: str
    heartbeat_age_s: float = 0.0


class Health:
    """Asks the default model's engine. Never waits for it."""

    def __init__(
        self, pool: EnginePool, *, clock: Callable[[], float] = time.monotonic, patience_s: float = PATIENCE_S
    ) -> None:
        self._pool = pool
        self._clock = clock
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._loading: Loading | None = None
        self._question: Future[None] | None = None
        self._asked_at = 0.0

    def look(self) -> Report:
        """How the engine is, and another question for next time. A model that is not there is asked for."""
        with self._lock:
            failed = _failure(self._loading)
            loading = self._pool.request()  # one that ended is replaced, so that the next visitor finds another
            self._pool.leave(loading)
            if loading is not self._loading:
                self._loading, self._question = loading, None
            if failed:
                return Report(False, "engine: the model could not be loaded")
            if not loading.future.done():
                return Report(True, f"engine: loading, {loading.fraction:.0%}")
            if _failure(loading):
                return Report(False, "engine: the model could not be loaded")
            return self._ask(loading)

    def _ask(self, loading: Loading) -> Report:
        if self._question is None or self._question.done():
            try:
                self._question, self._asked_at = bridge.pulse(loading.future.result()), self._clock()
            except EngineStopped:
                return Report(False, "engine: stopped")
            return Report(True, "engine: well")
        age = self._clock() - self._asked_at
        words = f"engine: no answer for {age:.1f} s"
        return Report(age < self._patience_s, words, age)


def _failure(loading: Loading | None) -> bool:
    return loading is not None and loading.future.done() and loading.future.exception() is not None
