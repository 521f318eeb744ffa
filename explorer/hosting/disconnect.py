"""What becomes of a run when its page is gone for good, and when the page comes back after all.

"disconnect" is a stop rule like the others: the record says that it fired. It ends a run that nobody watches,
and it no longer holds once somebody does.
"""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import Future
from typing import Any

from engine.errors import EngineStopped
from explorer.workspace.branch import Branch


def stop_run(branch: Branch | None) -> None:
    """Ask the engine to end the run; what it does for this session meanwhile comes first."""
    if branch is None or not branch.records or branch.records[-1].finish_reason is not None:
        return
    try:
        branch.session.stop("disconnect")
    except EngineStopped:
        return  # it has ended every run


def resume_run(branch: Branch | None) -> None:
    """Take the end back. Whatever is asked for next is served after this."""
    if branch is None or not _has_parted(branch):
        return
    try:
        branch.session.rewind(branch.newest)  # to where it stands: forgets only why it was stopped
        branch.session.configure(stop=branch.session.recipe.stop)  # every rule is checked again
    except EngineStopped:
        return


def settled(branch: Branch | None) -> Generator[Future[Any], Any, None]:
    """Wait until the end is taken back, so that the page that has just opened shows a run that can go on."""
    if branch is not None and _has_parted(branch):
        yield branch.session.configure()


def _has_parted(branch: Branch) -> bool:
    return bool(branch.records) and branch.records[-1].finish_reason == "disconnect"
