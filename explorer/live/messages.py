"""What a page says over the live line, read and checked: the opening of a connection, then commands and receipts.

The protocol is in docs/live-line.md. A message that cannot be read ends the connection with the reason.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from explorer.following.look import Look, read_look
from explorer.gate.sizes import MOST_BYTES_IN
from explorer.operations import checked

VERSION = 1
MOST_COMMANDS = 64  # in an opening, and waiting for their turn
_MOST_NUMBER = 2**53 - 1
_NAME = 16, 64  # characters of an owner's secret: too many to guess, few enough to keep


class OtherVersion(checked.BadCommand):
    """The page is of an older or newer Loupe."""


@dataclass(frozen=True, slots=True)
class Command:
    """One thing the page asks for. `n` rises by one per command of a page instance."""

    n: int
    op: str
    args: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Held:
    """The history a page holds: its epoch, and how many of its steps."""

    epoch: int
    steps: int


@dataclass(frozen=True, slots=True)
class Remembered:
    """What a tab's own storage knows of its session. `recipe` is checked when something is rebuilt from it."""

    sid: str
    recipe: object = None
    solo: bool = False


@dataclass(frozen=True, slots=True)
class Opening:
    """The first message of a connection.

    owner    the secret under which this browser tab owns its session
    mount    which instance of the page speaks
    query    of the page's address
    seen     answers up to this number have arrived
    commands  those without an answer, in order
    """

    owner: str
    mount: str
    query: str = ""
    session: Remembered | None = None
    have: Held | None = None
    seen: int = 0
    commands: tuple[Command, ...] = ()


@dataclass(frozen=True, slots=True)
class Message:
    """Any later message; what it does not say is None."""

    command: Command | None = None
    seen: int | None = None
    drawn: int | None = None
    beat: int | None = None
    look: Look | None = None


def read_opening(text: str) -> Opening:
    """The first message. Raises BadCommand, and OtherVersion where the page is of another Loupe."""
    given = _object(text)
    version = given.get("loupe")
    if version != VERSION:
        raise OtherVersion(f"This page speaks version {checked.short(version)}, the server {VERSION}. Reload the page.")
    commands = checked.sequence(given.get("commands", []), "commands", MOST_COMMANDS)
    return Opening(
        owner=_name(given.get("owner"), "owner"),
        mount=_name(given.get("mount"), "mount", least=1),
        query=checked.text(given.get("query", ""), "query", MOST_BYTES_IN),
        session=_remembered(given.get("session")),
        have=_held(given.get("have")),
        seen=_number(given.get("seen", 0), "seen"),
        commands=tuple(_command(checked.mapping(one, "a command")) for one in commands),
    )


def read_message(text: str) -> Message:
    """A later message. Raises BadCommand."""
    given = _object(text)
    checked.known_keys(given, "a message", ("n", "op", "args", "seen", "drawn", "beat", "look"))
    if not given:
        raise checked.BadCommand("a message must say something, got {}.")
    return Message(
        look=read_look(given["look"]) if "look" in given else None,
        command=_command(given) if "n" in given or "op" in given else None,
        **{name: _number(given[name], name) for name in ("seen", "drawn", "beat") if name in given},
    )


def _object(text: str) -> Mapping[str, object]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise checked.BadCommand(f"a message must be JSON: {str(error)[:80]}.") from None
    return checked.mapping(value, "a message")


def _command(given: Mapping[str, object]) -> Command:
    return Command(
        n=_number(given.get("n"), "n", least=1),
        op=checked.text(given.get("op"), "op", 40),
        args=checked.mapping(given.get("args", {}), "args"),
    )


def _held(value: object) -> Held | None:
    if value is None:
        return None
    given = checked.mapping(value, "have")
    return Held(_number(given.get("epoch"), "epoch"), _number(given.get("steps"), "steps"))


def _remembered(value: object) -> Remembered | None:
    if value is None:
        return None
    given = checked.mapping(value, "session")
    return Remembered(
        sid=checked.text(given.get("sid", ""), "sid", _NAME[1]),
        recipe=given.get("recipe"),
        solo=checked.flag(given.get("solo", False), "solo"),
    )


def _name(value: object, name: str, least: int = _NAME[0]) -> str:
    text = checked.text(value, name, _NAME[1])
    if len(text) < least:
        raise checked.BadCommand(f"{name} must have {least} characters or more.")
    return text


def _number(value: object, name: str, least: int = 0) -> int:
    return checked.whole(value, name, least, _MOST_NUMBER)
