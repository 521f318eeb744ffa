"""The block at the top of a lesson's file: "key: value" lines between two lines of dashes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from explorer.lessons.actions import BadAction, Changes, parse_changes
from explorer.workspace.examples import PromptMode

Blame = Callable[[int, str], None]  # a line, and what is wrong there

_NEEDED = ("title", "summary", "minutes", "model", "prompt")
_KNOWN = (*_NEEDED, "mode", "seed", "settings")


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """What the block says, each with its line; what is wrong was blamed, and has a harmless value here."""

    said: dict[str, tuple[int, str]] = field(default_factory=dict)

    def line(self, name: str) -> int:
        return self.said.get(name, (1, ""))[0]

    def text(self, name: str) -> str:
        return self.said.get(name, (1, ""))[1]

    def number(self, name: str, low: int, high: int, blame: Blame) -> int:
        """A whole number; `low` where there is none."""
        value = self.text(name)
        if not value:
            return low
        if not re.fullmatch(r"[0-9]{1,10}", value) or not low <= int(value) <= high:
            blame(self.line(name), f"{name} is a whole number from {low} to {high:,}, got {value!r}.")
            return low
        return int(value)

    def mode(self, blame: Blame) -> PromptMode:
        value = self.text("mode")
        if value not in ("", "raw", "chat"):
            blame(self.line("mode"), f"mode is raw or chat, got {value!r}.")
        return "chat" if value == "chat" else "raw"

    def settings(self, blame: Blame) -> Changes:
        value = self.text("settings")
        try:
            return parse_changes(value) if value else Changes()
        except BadAction as error:
            blame(self.line("settings"), str(error))
            return Changes()


def read_front_matter(written: str, blame: Blame) -> tuple[FrontMatter, str]:
    """The block, and the rest with an empty line for every one that was taken, so that lines keep their numbers."""
    lines = written.split("\n")
    end = next((i for i, line in enumerate(lines) if i and line.strip() == "---"), None)
    if lines[0].strip() != "---" or end is None:
        blame(1, f"The file begins with --- and a block of {', '.join(_NEEDED)}, up to the next ---.")
        return FrontMatter(), written
    said: dict[str, tuple[int, str]] = {}
    for i, line in enumerate(lines[1:end], 2):
        name, colon, value = (part.strip() for part in line.partition(":"))
        if not line.strip():
            continue
        if not colon or name not in _KNOWN:
            blame(i, f"There is no {name[:40]!r} here. Known: {', '.join(_KNOWN)}.")
        elif name in said:
            blame(i, f"{name} stands twice.")
        else:
            said[name] = (i, value)
    for name in _NEEDED:
        if not said.get(name, (1, ""))[1]:
            blame(said.get(name, (1, ""))[0], f"The block at the top needs a {name}.")
    return FrontMatter(said), "\n".join([""] * (end + 1) + lines[end + 1 :])
