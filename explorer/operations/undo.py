"""The operation that takes the last act back: a forced token, a rewind, a new prompt, Reset, or an Undo.

What was dropped is a recipe, so it is built again beside what is there, and takes its place once that has worked.
"""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from engine.errors import SessionError
from explorer.live.token_payload import TokenList
from explorer.operations.open_session import session_of
from explorer.operations.operation import Args, Running, plain
from explorer.workspace.branch import Branch, give_up
from explorer.workspace.dropped import Dropped
from explorer.workspace.workspace import Workspace

if TYPE_CHECKING:
    from engine.session import DecodeSession


def undo(workspace: Workspace, args: Args) -> Running:
    """Bring back what the last act dropped. What is on screen now is kept in turn, so Undo can be undone."""
    dropped = workspace.dropped
    if dropped is None:
        raise SessionError("There is nothing to undo: no token was forced and no run was dropped.")
    changed = next((branch for branch in workspace.branches if dropped.in_place and branch.id == dropped.active), None)
    if changed is None:
        now = workspace.before("undo", workspace.branches)
    else:
        now = workspace.before_change_of("undo", changed)
    sessions = yield from _sessions_of(workspace, dropped)
    if changed is not None:
        give_up(changed.session)
        workspace.rebuilt(changed, sessions[0])
        workspace.active = changed
    else:
        _all_again(workspace, dropped, sessions)
    workspace.prompt, workspace.mode, workspace.notes = dropped.prompt, dropped.mode, dropped.notes
    workspace.dropped = now
    workspace.keep_settings()
    return plain(act=dropped.act, steps=dropped.steps)


def _sessions_of(workspace: Workspace, dropped: Dropped) -> Generator[Future[Any], Any, list[DecodeSession]]:
    """The runs in sessions of their own. Where one cannot be had, none is kept and nothing has changed."""
    made: list[DecodeSession] = []
    try:
        for run in dropped.runs:
            session = yield from session_of(workspace, run.recipe, run.roles)
            made.append(session)
    except BaseException:
        for session in made:
            give_up(session)
        raise
    return made


def _all_again(workspace: Workspace, dropped: Dropped, sessions: list[DecodeSession]) -> None:
    workspace.start_over()
    tokenizer = workspace.engine.tokenizer
    for run, session in zip(dropped.runs, sessions, strict=True):
        workspace.branches.append(Branch(run.branch, session, TokenList(tokenizer), run.parent, run.at))
    workspace.resume(dropped.active)
