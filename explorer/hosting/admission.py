"""A place in the engine for one more run, also where every place is taken: who sleeps for good makes room, others wait.

The engine has so many places that every tab of a full class has one for each of its runs. What can fill them is runs
whose tabs have left: their recipes are kept for an hour. The one that left longest ago is forgotten first.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING

from explorer.hosting.waiting_line import Waiting, WaitingLine

if TYPE_CHECKING:
    from engine.llm_engine import LLMEngine


def _nobody() -> Future[None] | None:
    return None


class Admission:
    """Who waits for a place, and how one is made.

    forget  gives up the runs of a tab that left, the one that left longest ago; None where nobody has left
    """

    def __init__(self, forget: Callable[[], Future[None] | None] = _nobody) -> None:
        self.forget = forget
        self.line = WaitingLine()

    def ask(self, sid: str, engine: LLMEngine) -> Waiting | None:
        """Where a tab stands in line; None where there is a place for it."""
        most = engine.config.budgets.max_sessions
        return self.line.ask(sid, max(0, most - len(engine.sessions))) if most else None
