"""What the engine thread is asked for: one decode step, or work in pieces."""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from engine.records import StepRecord
from engine.session_state import SessionState

Pieces = Generator[None, None, Any]
Work = Callable[[], Pieces]


@dataclass(slots=True)
class StepRequest:
    """One decode step of one session.

    before   raises where the step cannot be taken
    after    publishes the session before the Future resolves
    restore  fills a released cache again
    """

    state: SessionState
    asked_ms: float
    before: Callable[[], None]
    after: Callable[[], None]
    restore: Work
    future: Future[StepRecord] = field(default_factory=Future)


@dataclass(slots=True)
class WorkRequest:
    """Anything else: a generator that yields between pieces."""

    start: Work
    future: Future[Any] = field(default_factory=Future)
    running: Pieces | None = None
