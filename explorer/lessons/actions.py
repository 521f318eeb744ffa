"""The acts of a lesson, as they are written: "step 5", "set temperature 0", "look at layer 3 head 2".

One grammar for both sides: `do` lets the page act, `you` lets the reader.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from engine.errors import LoupeError
from explorer.operations import checked
from explorer.workspace.examples import PromptMode

Act = Literal[
    "prefill", "step", "slow", "play", "look", "open", "close", "set", "force", "rewind", "fork", "again", "samples",
    "check", "triangle", "measure",
]  # fmt: skip

WINDOWS = (
    "forward", "stops", "settings", "checks", "predictions", "layers", "surprisal", "help", "branches", "model",
)  # fmt: skip
SAMPLING_WORDS = {
    "temperature": "temperature",
    "top-k": "top_k",
    "top-p": "top_p",
    "min-p": "min_p",
    "penalty": "repetition_penalty",
}
MOST_STEPS = 200


class BadAction(Exception):
    """What was written is no act; the words say what would be."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Settings that are changed; what is not named stays. `defaults` puts all sampling settings back first."""

    sampling: Mapping[str, float] = field(default_factory=dict)
    stop: Mapping[str, object] = field(default_factory=dict)
    seed: int | None = None
    solo: bool | None = None
    defaults: bool = False


@dataclass(frozen=True, slots=True)
class Action:
    """One act, and the line of the file that asks for it. Which other values count goes by `act`: docs/lessons.md."""

    act: Act
    count: int = 1
    prompt: str | None = None
    mode: PromptMode | None = None
    afresh: bool = False
    step: int | Literal["newest"] | None = None
    layer: int | None = None
    head: int | None = None
    token: int | None = None
    name: str = ""
    text: str = ""
    changes: Changes = Changes()
    words: str = ""
    line: int = field(default=0, compare=False)


def parse_action(written: str) -> Action:
    """Read one act. Raises BadAction."""
    words = " ".join(written.split()) if '"' not in written else written.strip()
    verb = words.split(" ", 1)[0]
    rest = words[len(verb) :].strip()
    reader = _READERS.get(verb)
    if reader is None:
        raise BadAction(f"There is no act {words!r}. Acts begin with: {', '.join(_READERS)}.")
    return reader(rest)


def parse_changes(written: str) -> Changes:
    """Read settings, "temperature 0, top-k 5". Raises BadAction."""
    sampling: dict[str, float] = {}
    stop: dict[str, object] = {}
    seed, solo, defaults = None, None, False
    for part in _parts(written):
        name, _, value = part.partition(" ")
        value = value.strip()
        if name == "defaults" and not value:
            defaults = True
        elif name == "top-k":
            sampling["top_k"] = _whole(name, value, 0, 10_000_000)
        elif name in SAMPLING_WORDS:
            sampling[SAMPLING_WORDS[name]] = _number(name, value)
        elif name == "seed":
            seed = _whole(name, value, 0, 2**31)
        elif name == "max-new-tokens":
            stop["max_new_tokens"] = _whole(name, value, 1, 1_000_000)
        elif name == "stop":
            stop["stop_strings"] = (_quoted(value, "stop"),)
        elif name == "eos":
            stop["use_end_ids"] = _switch(name, value)
        elif name == "alone":
            solo = _switch(name, value)
        else:
            known = [*SAMPLING_WORDS, "seed", "max-new-tokens", "stop", "eos", "alone", "defaults"]
            raise BadAction(f"There is no setting {name!r}. Settings are: {', '.join(known)}.")
    return Changes(sampling, stop, seed, solo, defaults)


def _parts(written: str) -> list[str]:
    """Cut at commas that stand outside of quotes."""
    parts = [part.strip() for part in re.findall(r'(?:"[^"]*"|[^,"])+', written)]
    if not parts:
        raise BadAction("Name a setting and its value, such as: set temperature 0.")
    return parts


def _number(name: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise BadAction(f"{name} needs a number, got {value!r}.") from None


def _whole(name: str, value: str, low: int, high: int) -> int:
    if not re.fullmatch(r"[0-9]{1,19}", value) or not low <= int(value) <= high:
        raise BadAction(f"{name} needs a whole number from {low} to {high:,}, got {value!r}.")
    return int(value)


def _switch(name: str, value: str) -> bool:
    if value not in ("on", "off"):
        raise BadAction(f"{name} is on or off, got {value!r}.")
    return value == "on"


def _quoted(value: str, act: str) -> str:
    """Text between straight quotes; \\n is a line end."""
    found = re.fullmatch(r'"((?:[^"\\]|\\["n\\])+)"', value)
    if not found:
        raise BadAction(f'{act} needs a text between quotes, such as: {act} " mat". It got {value!r}.')
    text = found[1].replace("\\n", "\n").replace('\\"', '"').replace("\\\\", "\\")
    try:
        return checked.text(text, "the text")
    except LoupeError as error:
        raise BadAction(str(error)) from None


def _prefill(rest: str) -> Action:
    afresh = rest.split(" ", 1)[0] == "afresh"
    rest = rest.removeprefix("afresh").strip() if afresh else rest
    if not rest:
        return Action("prefill", afresh=afresh)
    mode: PromptMode = "chat" if rest.startswith("chat ") else "raw"
    return Action("prefill", prompt=_quoted(rest.removeprefix("chat ").strip(), "prefill"), mode=mode, afresh=afresh)


def _steps(act: Literal["step", "play"]) -> Callable[[str], Action]:
    return lambda rest: Action(act, count=_whole(act, rest, 1, MOST_STEPS) if rest else 1)


def _slow(rest: str) -> Action:
    if rest != "step":
        raise BadAction("Write: slow step.")
    return Action("slow")


def _look(rest: str) -> Action:
    words = rest.removeprefix("at ").split()
    if words in (["prefill"], ["newest"]):
        return Action("look", step=0 if words == ["prefill"] else "newest")
    found = dict(zip(words[::2], words[1::2], strict=False))
    if not words or len(words) != 2 * len(found) or set(found) - {"step", "layer", "head", "token"}:
        raise BadAction(
            "Write: look at prefill, look at newest, or look at step, layer, head or token with a number, such as: "
            f"look at layer 3 head 2. It got {rest!r}."
        )
    numbers = {name: _whole(name, value, 0, 100_000) for name, value in found.items()}
    return Action("look", **numbers)  # type: ignore[arg-type]


def _open(rest: str) -> Action:
    if rest not in WINDOWS:
        raise BadAction(f"There is nothing to open called {rest!r}. There are: {', '.join(WINDOWS)}.")
    return Action("open", name=rest)


def _set(rest: str) -> Action:
    return Action("set", changes=parse_changes(rest), words=rest)


def _rewind(rest: str) -> Action:
    number = rest.removeprefix("to ").removeprefix("step ")
    return Action("rewind", step=0 if number == "prefill" else _whole("rewind to", number, 0, 100_000))


def _sample(rest: str) -> Action:
    if rest not in ("again", "100"):
        raise BadAction(f"Write: sample again, or sample 100. It got {rest!r}.")
    return Action("again" if rest == "again" else "samples")


def _alone(act: Act) -> Callable[[str], Action]:
    def read(rest: str) -> Action:
        if rest:
            raise BadAction(f"{act} takes nothing after it, got {rest!r}.")
        return Action(act)

    return read


_READERS: Mapping[str, Callable[[str], Action]] = {
    "prefill": _prefill,
    "step": _steps("step"),
    "slow": _slow,
    "play": _steps("play"),
    "look": _look,
    "open": _open,
    "close": _alone("close"),
    "set": _set,
    "force": lambda rest: Action("force", text=_quoted(rest, "force")),
    "rewind": _rewind,
    "fork": _alone("fork"),
    "sample": _sample,
    "check": _alone("check"),
    "triangle": _alone("triangle"),
    "measure": _alone("measure"),
}
