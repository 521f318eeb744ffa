"""What an operation is: a generator that yields what it waits for and returns an answer.

It waits for the engine's Futures, or for a number of seconds. So one event loop carries out everybody's, and none holds
it up. An operation changes the workspace only after the last Future that could fail: an error leaves the session as
it was.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeAlias

from engine.errors import NotPrefilled, UnknownStep
from explorer.live.frame import Json, Planes
from explorer.operations import checked
from explorer.workspace.branch import Branch
from explorer.workspace.workspace import Workspace

Args: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Value:
    """An answer. Its arrays are laid into whichever frame carries it; `ids` are the tokens it names."""

    render: Callable[[Planes], dict[str, Json]]
    ids: frozenset[int] = frozenset()


Running: TypeAlias = Generator["Future[Any] | float", Any, Value]
Operation: TypeAlias = Callable[[Workspace, Args], Running]


def plain(**values: Json) -> Value:
    """An answer without arrays."""
    return Value(lambda planes: values)


def at_once(act: Callable[[Workspace, Args], Value]) -> Operation:
    """An operation that waits for nothing."""

    def run(workspace: Workspace, args: Args) -> Running:
        yield from ()
        return act(workspace, args)

    return run


def active(workspace: Workspace) -> Branch:
    """The branch on screen, with at least its prefill done."""
    branch = workspace.active
    if branch is None or not branch.records:
        raise NotPrefilled("There is no step yet. Prefill a prompt first.")
    return branch


def step_of(branch: Branch, args: Args) -> int:
    """The step an operation is about; it must be one of the branch's."""
    step = checked.whole(args.get("step"), "step", 0, 2**31)
    if step > branch.newest:
        raise UnknownStep(f"There is no step {step}: this session has steps 0 to {branch.newest}.")
    return step
