"""A session for one more run of a tab, as soon as the engine has a place for it; who left long ago makes room."""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeAlias

from engine.config import Recipe
from engine.errors import EngineFull, LoupeError
from explorer.hosting.waiting_line import SILENT_S, Waiting
from explorer.workspace.workspace import Workspace

if TYPE_CHECKING:
    from engine.session import DecodeSession

Placing: TypeAlias = Generator["Future[Any]", Any, "DecodeSession"]


class NoPlace(LoupeError):
    """Every place for a run is taken by somebody who is there."""


def new_session(workspace: Workspace, recipe: Recipe) -> Placing:
    """An empty session with a recipe's settings. Raises NoPlace, with the place in line."""
    engine = workspace.engine

    def make() -> DecodeSession:
        return engine.create_session(
            sampling=recipe.sampling,
            stop=recipe.stop,
            seed=recipe.seed,
            solo=workspace.solo,
            owner=workspace.sid,
            watched=True,
        )

    return (yield from placed(workspace, make))


def placed(workspace: Workspace, make: Callable[[], DecodeSession | Future[DecodeSession]]) -> Placing:
    """What `make` gives (or promises), as soon as there is a place for it."""
    admission, sid, engine = workspace.admission, workspace.sid, workspace.engine
    while True:
        waiting = admission.ask(sid, engine)
        if waiting is None:
            try:
                made = make()
                session: DecodeSession = (yield made) if isinstance(made, Future) else made
            except EngineFull:  # somebody was quicker, in a thread of their own
                waiting = admission.line.ask(sid, 0)
            else:
                admission.line.leave(sid)
                return session
        freed = admission.forget()
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
