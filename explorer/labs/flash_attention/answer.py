"""The lab's answer: what attention over a prompt moves and holds, unfused and in tiles."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.labs.charts import number_text
from explorer.labs.flash_attention.traffic import Setting, Traffic
from explorer.labs.picture import Dash, Line, Plot, Point, Role, log_axis
from explorer.labs.shell import Answer

CURVES: tuple[tuple[str, str, Role, Dash], ...] = (
    ("naive", "unfused: scores and weights through memory", "forced", "solid"),
    ("no_reuse", "in tiles, keys read again for every tile of queries", "accent", "solid"),
    ("ideal", "each tensor moved once: the least", "gen", "dot"),
)  # field of Traffic, name


def sentence(at: Traffic) -> Answer:
    """What is moved, how many times less in tiles, and what has to be held at once."""
    return Answer(
        "Over a prompt of {length} tokens, unfused attention moves {naive} per head and layer. FlashAttention moves "
        "{tiled}, {times} times less, and holds one tile of scores, {tile}, in place of {matrix}.",
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
        label = f"your run, {here.length:,} tokens"
        dots.append(Point(label, here.length, here.no_reuse, number_text(here.no_reuse, "B"), "k", label=label))
    return Plot(
        title="Bytes moved for a prompt, one head of one layer",
        note=setting.words,
        x=log_axis("tokens in the prompt", lengths[0], lengths[-1], ticks=[n for n in lengths if n in SHOWN]),
        y=log_axis("", min(row.ideal for row in swept), max(row.naive for row in swept), "B"),
        lines=[
            Line(name, lengths, [getattr(row, field) for row in swept],
                 [number_text(getattr(row, field), "B") for row in swept], colour, dash, wide=field == "no_reuse")
            for field, name, colour, dash in CURVES
        ],
        points=dots,
        where={float(length): f"{length:,} tokens" for length in lengths},
    )  # fmt: skip


def _dot(at: Traffic, field: str, name: str, colour: Role, *, above: bool) -> Point:
    size = number_text(getattr(at, field), "B")
    return Point(name, at.length, getattr(at, field), size, colour, label=size, above=above)


SHOWN = frozenset(4**power for power in range(2, 12))  # lengths that are written under the axis
