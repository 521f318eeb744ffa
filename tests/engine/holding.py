"""Say when an engine serves whom: keep its thread busy for a while, ask for steps in the middle of heavy work."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

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


def ask_between_layers(
    engine: LLMEngine, monkeypatch: pytest.MonkeyPatch, ask: Callable[[], Future[Any]], count: int
) -> tuple[list[Future[Any]], list[bool]]:
    """Let `ask` put something into the queue at the first `count` pauses of heavy work, as if steps were always owed.

    Returns what was asked for, and whether it was done when the heavy work went on.
    """
    runner, server = engine.stepper.runner, engine._ready.result()
    serve, asked, done = runner.between_layers, [], []
    assert serve is not None
    server.alternation.owed_ms = 0.0
    monkeypatch.setattr(server.alternation, "stepped", lambda ms: None)

    def pause() -> None:
        asks = len(asked) < count and server._at_work is not None  # None: these are the layers of somebody let in
        if asks:
            asked.append(ask())
        serve()
        if asks:
            done.append(asked[-1].done())

    monkeypatch.setattr(runner, "between_layers", pause)
    return asked, done
