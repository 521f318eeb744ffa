"""A place in the engine for one more run, also where every place is taken: who sleeps for good makes room, others wait.

The engine has so many places that every tab of a full class has one for each of its runs. What can fill them is runs
whose tabs have left: their recipes are kept for an hour. The one that left longest ago is forgotten first.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeAlias

from engine.config import Recipe
from engine.errors import EngineFull, LoupeError
from explorer.hosting.waiting_line import SILENT_S, Door, Waiting

if TYPE_CHECKING:
    from engine.llm_engine import LLMEngine
    from engine.session import DecodeSession
    from explorer.workspace.workspace import Workspace

Placing: TypeAlias = Generator["Future[Any]", Any, "DecodeSession"]


class NoPlace(LoupeError):
    """Every place for a run is taken by somebody who is there."""


def _nobody() -> Future[None] | None:
    return None


class Places:
    """Who waits for a place, and how one is made.

    forget  gives up the runs of a tab that left, the one that left longest ago; None where nobody has left
    """

    def __init__(self, forget: Callable[[], Future[None] | None] = _nobody) -> None:
        self.forget = forget
        self.line = Door()

    def ask(self, sid: str, engine: LLMEngine) -> Waiting | None:
        """Where a tab stands in line; None where there is a place for it."""
        most = engine.config.budgets.max_sessions
        return self.line.ask(sid, max(0, most - len(engine.sessions))) if most else None


def new_session(workspace: Workspace, recipe: Recipe) -> Placing:
    """An empty session with a recipe's settings. Raises NoPlace, with the place in line."""
    engine = workspace.engine

    def make() -> DecodeSession:
        return engine.create_session(sampling=recipe.sampling, stop=recipe.stop, seed=recipe.seed, solo=workspace.solo)

    return (yield from placed(workspace, make))


def placed(workspace: Workspace, make: Callable[[], DecodeSession | Future[DecodeSession]]) -> Placing:
    """What `make` gives (or promises), as soon as there is a place for it."""
    places, sid, engine = workspace.places, workspace.sid, workspace.engine
    while True:
        waiting = places.ask(sid, engine)
        if waiting is None:
            try:
                made = make()
                session: DecodeSession = (yield made) if isinstance(made, Future) else made
            except EngineFull:  # somebody was quicker, in a thread of their own
                waiting = places.line.ask(sid, 0)
            else:
                places.line.leave(sid)
                return session
        freed = places.forget()
        if freed is None:
            raise NoPlace(words(waiting, engine.config.budgets.max_sessions))
        yield freed


def words(waiting: Waiting | None, most: int) -> str:
    """What a person reads who has to wait."""
    stands = "next" if waiting is None or waiting.place == 1 else f"number {waiting.place}"
    return (
        f"All {most:,} places for runs are taken just now; you are {stands} in line. "
        f"Your place in it is kept for {SILENT_S:.0f} s: ask again in a moment."
    )
