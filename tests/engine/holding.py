"""Keep an engine's thread busy, so that what is asked for meanwhile arrives together."""

from __future__ import annotations

import threading

from engine.llm_engine import LLMEngine


def hold(engine: LLMEngine) -> threading.Event:
    """The engine does nothing else until the event is set (or half a minute has passed)."""
    entered, release = threading.Event(), threading.Event()

    def work():
        entered.set()
        release.wait(30)
        yield from ()

    engine.submit("hold", work)
    assert entered.wait(30)
    return release
