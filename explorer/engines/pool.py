"""Running models, each loaded once however many ask for it, and closed when nobody uses it any more.

Two first visitors at the same moment share one load. A model that could not be loaded is forgotten, so
asking again tries again. The model named first is kept for the next visitor even while nobody is there.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.config import EngineConfig
from engine.errors import LoupeError
from engine.progress import OnLoading
from explorer.engines.bridge import settle_memory, start_engine

if TYPE_CHECKING:
    from engine.llm_engine import LLMEngine

log = logging.getLogger(__name__)

CLOSING_S = 5.0  # a thread that hangs in a forward is left to itself: it takes nothing more, and ends when that is over

Start = Callable[[EngineConfig, OnLoading], "LLMEngine"]


class Loading:
    """A model that is running or on its way. `text` and `fraction` say how far it is."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.future: Future[LLMEngine] = Future()
        self.text = "Waiting"
        self.fraction = 0.0
        self.users = 0
        self.unused_since: float | None = None

    def report(self, text: str, fraction: float) -> None:
        """Progress callback of the loader."""
        self.text, self.fraction = text, min(1.0, max(0.0, fraction))

    @property
    def is_alive(self) -> bool:
        """Running, or still on its way."""
        return not self.future.done() or (self.future.exception() is None and self.future.result().is_alive)


class EnginePool:
    """Engines by model name."""

    def __init__(
        self,
        config: EngineConfig,
        *,
        start: Start = start_engine,
        clock: Callable[[], float] = time.monotonic,
        keep_unused_s: float = 60.0,
    ) -> None:
        self.config = config
        self.start = start
        self._clock = clock
        self._keep_unused_s = keep_unused_s
        self._lock = threading.Lock()
        self._loadings: dict[str, Loading] = {}

    def request(self, model: str | None = None, *, hub_token: bool = True) -> Loading:
        """The engine of a model, loading it in the background where it is not there. Counts as one user of it.

        hub_token  whether the Hub may be told who asks
        """
        wanted = model or self.config.model
        with self._lock:
            loading = self._find(wanted)
            if loading is None:
                loading = self._loadings[wanted] = Loading(wanted)
                threading.Thread(target=self._load, args=(loading, hub_token), name="loupe-load", daemon=True).start()
            loading.users += 1
            loading.unused_since = None
            return loading

    def leave(self, loading: Loading) -> None:
        """One user less."""
        with self._lock:
            loading.users -= 1
            if loading.users <= 0:
                loading.unused_since = self._clock()

    def running(self) -> list[LLMEngine]:
        """The engines that are there now."""
        with self._lock:
            done = [loading.future for loading in self._loadings.values() if loading.future.done()]
        return [future.result() for future in done if future.exception() is None]

    def close_unused(self) -> list[str]:
        """Close models that nobody has used for a while; the default stays. Returns their names."""
        with self._lock:
            done = [loading for loading in self._loadings.values() if self._is_over(loading)]
            for loading in done:
                del self._loadings[loading.model]
        for loading in done:
            loading.future.result().close(CLOSING_S)
            loading.future = Future()  # the last reference to the weights
        if done:
            settle_memory()
        return [loading.model for loading in done]

    def close(self) -> None:
        """End every engine: a thread inside torch must not be cut off when the process ends."""
        with self._lock:
            running, self._loadings = list(self._loadings.values()), {}
        for loading in running:
            if loading.future.done():
                loading.future.result().close()

    def _find(self, wanted: str) -> Loading | None:
        for loading in self._loadings.values():
            if loading.is_alive and (wanted == loading.model or wanted == _id_of(loading)):
                return loading
        return None

    def _is_over(self, loading: Loading) -> bool:
        if loading.model == self.config.model or loading.unused_since is None or not loading.future.done():
            return False
        return self._clock() - loading.unused_since >= self._keep_unused_s

    def _load(self, loading: Loading, hub_token: bool) -> None:
        try:
            engine = self.start(replace(self.config, model=loading.model, hub_token=hub_token), loading.report)
        except BaseException as error:
            with self._lock:
                self._loadings.pop(loading.model, None)
            loading.future.set_exception(_for_people(error))
            return
        loading.future.set_result(engine)


def _id_of(loading: Loading) -> str | None:
    return loading.future.result().info.id if loading.future.done() else None


def _for_people(error: BaseException) -> LoupeError:
    if isinstance(error, LoupeError):
        return error
    log.error("a model could not be started", exc_info=error)
    return LoupeError(
        f"The model could not be started: {type(error).__name__}. The server's log has the details. "
        "Try again, or choose another model."
    )
