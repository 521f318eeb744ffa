"""Each lever by itself and those that are switched on together, beside the floor where none is."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from engine.costs import ModelShape
from explorer.labs.roofline.lower_bounds import Floor, Levers, Rates, floor_of
from explorer.say import words_beside

say = words_beside(__file__)

FIELDS = {
    "weights": ("weights",),
    "cache": ("cache",),
    "devices": ("devices",),
    "batch": ("batch",),
    "speculation": ("drafted", "acceptance", "draft_cost"),
    "attention": ("attention",),
}  # lever -> the settings that it moves


@dataclass(frozen=True, slots=True)
class Bar:
    """One floor under a name. `on` is False for a lever that is shown and not switched on."""

    name: str
    said: str
    levers: Levers
    floor: Floor
    on: bool = True


def bars(
    shape: ModelShape, rates: Rates, context: int, base: Levers, amounts: Levers, on: frozenset[str]
) -> tuple[Bar, ...]:
    """The floor as it is, with each lever alone, and with all that are switched on.

    base     no lever moved
    amounts  how far each is moved where it is
    """
    found = [Bar(say("levers.nothing"), describe(base, tuple(FIELDS)), base, floor_of(shape, rates, context, base))]
    for lever in FIELDS:
        moved = move(base, amounts, frozenset({lever}))
        floor = floor_of(shape, rates, context, moved)
        found.append(Bar(lever, describe(moved, (lever,)), moved, floor, lever in on))
    if on:
        together = move(base, amounts, on)
        words = describe(together, tuple(lever for lever in FIELDS if lever in on))
        found.append(Bar(say("levers.everything"), words, together, floor_of(shape, rates, context, together)))
    return tuple(found)


def move(base: Levers, amounts: Levers, on: frozenset[str]) -> Levers:
    """`base` with the settings of these levers taken from `amounts`."""
    names = {name for lever in on for name in FIELDS[lever]}
    return replace(base, **{f.name: getattr(amounts, f.name) for f in fields(Levers) if f.name in names})


def describe(levers: Levers, which: tuple[str, ...]) -> str:
    """Settings in words: "weights int8, 8 devices"."""
    drafted = (
        say("levers.drafted", drafted=levers.drafted, acceptance=f"{levers.acceptance:g}")
        if levers.drafted
        else say("levers.no_draft")
    )
    said = {
        "weights": say("levers.weights", weights=levers.weights),
        "cache": say("levers.cache", cache=levers.cache),
        "devices": say("levers.devices", n=levers.devices),
        "batch": say("levers.batch", batch=levers.batch),
        "speculation": drafted,
        "attention": say("levers.attention", attention=levers.attention),
    }
    return ", ".join(said[lever] for lever in which)
