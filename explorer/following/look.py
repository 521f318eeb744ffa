"""What the leader looks at: which step, layer and head, and what is open. Said by the page, checked, and passed on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from explorer.live.frame import Json
from explorer.operations import checked

PANELS = frozenset({"kv", "attention", "next", "timing", "memory"})
WINDOWS = frozenset({"stops"})
_MOST = 2**31


@dataclass(frozen=True, slots=True)
class Look:
    """What is on the leader's screen beside the run.

    presents  the panel that fills the screen in presenter's mode; None: the normal page
    window    the window that is open over the panels; None: none
    lesson    "id/scene" of the lesson that is open; None: none
    """

    step: int = 0
    layer: int = 0
    head: int = 0
    presents: str | None = None
    window: str | None = None
    lesson: str | None = None

    def json(self) -> dict[str, Json]:
        """As followers get it."""
        return asdict(self)


def read_look(value: object) -> Look:
    """Raises BadCommand on what no page would say."""
    given = checked.mapping(value, "look")
    checked.known_keys(given, "look", ("step", "layer", "head", "presents", "window", "lesson"))
    lesson = given.get("lesson")
    return Look(
        step=checked.whole(given.get("step", 0), "look.step", -1, _MOST),
        layer=checked.whole(given.get("layer", 0), "look.layer", 0, _MOST),
        head=checked.whole(given.get("head", 0), "look.head", 0, _MOST),
        presents=_one_of(given, "presents", PANELS),
        window=_one_of(given, "window", WINDOWS),
        lesson=None if lesson is None else checked.text(lesson, "look.lesson", 200),
    )


def _one_of(given: Mapping[str, object], name: str, known: frozenset[str]) -> str | None:
    value = given.get(name)
    if value is None:
        return None
    text = checked.text(value, f"look.{name}", 40)
    if text not in known:
        raise checked.BadCommand(f"look.{name} must be one of {', '.join(sorted(known))}, got {checked.short(text)}.")
    return text
