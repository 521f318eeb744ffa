"""The lab's answer: what attention over a prompt moves and holds, unfused and in tiles."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.labs.charts import number_text
from explorer.labs.flash_attention.traffic import Setting, Traffic
from explorer.labs.picture import Dash, Line, Plot, Point, Role, log_axis
from explorer.labs.shell import Answer
from explorer.say import words_beside

say = words_beside(__file__)

CURVES: tuple[tuple[str, str, Role, Dash], ...] = (
    ("naive", say("answer.unfused"), "forced", "solid"),
    ("no_reuse", say("answer.tiled"), "accent", "solid"),
    ("ideal", say("answer.once"), "gen", "dot"),
)  # field of Traffic, name


def sentence(at: Traffic) -> Answer:
    """What is moved, how many times less in tiles, and what has to be held at once."""
    return Answer(
        say.unfilled("answer.answer"),
        {
            "naive": number_text(at.naive, "B"),
            "tiled": number_text(at.no_reuse, "B"),
            "times": f"{at.naive / at.no_reuse:.3g}",
            "tile": number_text(at.tile, "B"),
            "matrix": number_text(at.matrix, "B"),
        },
        {"length": f"{at.length:,}"},
    )


def moved(swept: Sequence[Traffic], setting: Setting, at: Traffic, here: Traffic | None) -> Plot:
    """Bytes moved against the prompt's length; `at` is the length asked about, `here` the session's own."""
    lengths = [row.length for row in swept]
    dots = [_dot(at, *curve[:3], above=not place) for place, curve in enumerate(CURVES[:2])]
    if here is not None:
        label = say("answer.yours", length=f"{here.length:,}")
        dots.append(Point(label, here.length, here.no_reuse, number_text(here.no_reuse, "B"), "k", label=label))
    return Plot(
        title=say("answer.title"),
        note=setting.words,
        x=log_axis(say("answer.tokens"), lengths[0], lengths[-1], ticks=[n for n in lengths if n in SHOWN]),
        y=log_axis("", min(row.ideal for row in swept), max(row.naive for row in swept), "B"),
        lines=[
            Line(name, lengths, [getattr(row, field) for row in swept],
                 [number_text(getattr(row, field), "B") for row in swept], colour, dash, wide=field == "no_reuse")
            for field, name, colour, dash in CURVES
        ],
        points=dots,
        where={float(length): say("answer.at", length=f"{length:,}") for length in lengths},
    )  # fmt: skip


def _dot(at: Traffic, field: str, name: str, colour: Role, *, above: bool) -> Point:
    size = number_text(getattr(at, field), "B")
    return Point(name, at.length, getattr(at, field), size, colour, label=size, above=above)


SHOWN = frozenset(4**power for power in range(2, 12))  # lengths that are written under the axis
