"""What the browser says: a log of numbered commands, and what it holds already.

Streamlit keeps only the newest value of a component's state, so single messages can be skipped. Every
value therefore repeats all commands that were not acknowledged; reading one twice must change nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from explorer.operations import checked

MAX_COMMANDS = 512
_MAX_NUMBER = 2**53 - 1


@dataclass(frozen=True, slots=True)
class Command:
    """One thing the page asks for. `n` rises by one per command of a page instance."""

    n: int
    op: str
    args: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Wire:
    """One value of the component's state.

    mount   which instance of the page speaks
    epoch   of the history the browser holds; None where it holds none
    steps   how many records of that history it holds
    seen    commands up to this number are answered and done, as far as the browser knows
    poll    counts how often the browser asked again
    """

    mount: str
    epoch: int | None
    steps: int
    seen: int
    poll: int
    commands: tuple[Command, ...]

    def with_args(self, n: int, args: Mapping[str, object]) -> Wire:
        """The same value with other arguments for one command."""
        return replace(self, commands=tuple(replace(c, args=args) if c.n == n else c for c in self.commands))


def parse(value: object) -> Wire:
    """Read a value. Raises BadCommand where it is no wire at all; a bad command inside it is kept, to be answered."""
    given = checked.mapping(value, "wire")
    mount = checked.text(given.get("mount"), "mount", 64)
    if not mount:
        raise checked.BadCommand("mount must not be empty.")
    have = checked.mapping(given.get("have", {}), "have")
    commands = tuple(_command(c) for c in checked.sequence(given.get("cmds", []), "cmds", MAX_COMMANDS))
    first = min((c.n for c in commands), default=1)
    return Wire(
        mount=mount,
        epoch=_epoch(have.get("epoch")),
        steps=checked.whole(have.get("steps", 0), "steps", 0, _MAX_NUMBER),
        seen=checked.whole(given.get("seen", first - 1), "seen", 0, _MAX_NUMBER),
        poll=checked.whole(given.get("poll", 0), "poll", 0, _MAX_NUMBER),
        commands=tuple(sorted(commands, key=lambda c: c.n)),
    )


def _epoch(value: object) -> int | None:
    """The browser says -1 where it holds nothing."""
    if value is None or value == -1:
        return None
    return checked.whole(value, "epoch", 0, _MAX_NUMBER)


def _command(value: object) -> Command:
    given = checked.mapping(value, "a command")
    op = given.get("op")
    return Command(
        n=checked.whole(given.get("n"), "n", 1, _MAX_NUMBER),
        op=op if isinstance(op, str) and len(op) <= 40 else "",
        args={name: inner for name, inner in given.items() if name not in ("n", "op")},
    )
