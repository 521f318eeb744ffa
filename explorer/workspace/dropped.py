"""What an act dropped: runs as recipes, small enough to keep, so that the last such act can be undone.

A recipe gives the run back, tokens and all, by one prefill. Step times are measured once, so those are gone.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from engine.config import Recipe
from engine.tokens import Role
from explorer.workspace.examples import PromptMode

if TYPE_CHECKING:
    from explorer.workspace.branch import Branch

Act: TypeAlias = Literal["force", "rewind", "prefill", "reset", "undo"]

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class DroppedRun:
    """One run as it was: its branch, where that had left another, and everything to make it again."""

    branch: int
    parent: int | None
    at: int | None
    recipe: Recipe
    roles: tuple[Role, ...]


@dataclass(frozen=True, slots=True)
class Dropped:
    """What there was before an act.

    act     the act that dropped it
    runs    one where the act changed the run on screen, all of them where it began anew
    active  the branch that was on screen
    steps   of that run, that Undo brings back to the screen
    in_place  only that run changed, so only that one is put back: branches made since stay
    number  tells one from the next
    """

    act: Act
    runs: tuple[DroppedRun, ...]
    active: int
    steps: int
    prompt: str | None
    mode: PromptMode
    notes: tuple[str, ...]
    in_place: bool = False
    number: int = field(default_factory=lambda: next(_numbers))


def run_as_it_is(branch: Branch) -> DroppedRun:
    """A run, kept as its recipe."""
    snapshot = branch.session.snapshot
    roles = snapshot.roles[: len(snapshot.recipe.prompt_ids)]
    return DroppedRun(branch.id, branch.parent, branch.at, snapshot.recipe, roles)
