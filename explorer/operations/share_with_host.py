"""A tab's text shown to the host of a class: only while the student wants it, and without a name.

The host sees what is on screen and nothing that says whose it is. The number is new each time somebody shares, so
that even the order of coming tells nothing.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from explorer.hosting.limits import NotHere
from explorer.operations import checked
from explorer.operations.operation import Args, Value, at_once, plain
from explorer.workspace.workspace import Workspace

MOST_SHOWN = 4_000  # characters of one text: the newest

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class SharedText:
    """What one student lets the host read.

    prompt, text  as they are: to be shown as text, never as markup
    """

    number: int
    prompt: str
    text: str
    steps: int


@at_once
def share(workspace: Workspace, args: Args) -> Value:
    """Let the host of the class read this tab's text, or no longer."""
    wanted = checked.flag(args.get("on"), "on")
    if wanted and not workspace.hosting.has_class_page:
        raise NotHere("There is no page here on which a host could read it, so nothing is shared.")
    if not wanted:
        workspace.shared = None
    elif workspace.shared is None:
        workspace.shared = next(_numbers)
    return plain(shared=wanted)


def shared_text(workspace: Workspace) -> SharedText | None:
    """What the host may read of a tab; None where its student does not share, or has nothing yet."""
    number, branch = workspace.shared, workspace.active
    if number is None or branch is None or not branch.records:
        return None
    records = branch.records
    prompt = workspace.prompt or ""
    return SharedText(number, prompt[-MOST_SHOWN:], records[-1].text[-MOST_SHOWN:], len(records))
