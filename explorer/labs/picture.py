"""The picture that a lab opens on: lines and points, or bars, placed here and only drawn by the browser.

Everything is a fraction of the plot by the time it leaves: so a test can read what is shown, and the browser's part
stays small. Colours are the roles of the Step page. Words stay text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import streamlit as st

from explorer.components import lab_chart
from explorer.labs.charts import number_text

Role = Literal["accent", "forced", "gen", "k", "v", "bad", "prompt", "mute"]
Dash = Literal["solid", "dash", "dot"]
Size = Literal["tall", "mid", "low", "rest"]
HEIGHTS: dict[Size, int] = {
    "tall": 390,
    "mid": 256,
    "low": 124,
    "rest": 256,
}  # pixels at least; assets/app.css adds what is left
MOST_TICKS = 6


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis: `ticks` are values with their words."""

    title: str
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    log: bool = False

    def place(self, value: float) -> float:
        """Where a value stands, 0 to 1; below 0 or above 1 where it is not on the axis."""
        if not self.log:
            return (value - self.low) / (self.high - self.low)
        return math.log(value / self.low) / math.log(self.high / self.low) if value > 0 else -math.inf


@dataclass(frozen=True, slots=True)
class Line:
    """A curve. `words` say each value under the pointer; empty: it cannot be pointed at."""

    name: str
    xs: Sequence[float]
    ys: Sequence[float]
    words: Sequence[str] = ()
    colour: Role = "accent"
    dash: Dash = "solid"
    wide: bool = False


@dataclass(frozen=True, slots=True)
class Point:
    """A dot, larger where it has a label; that stands below it or above."""

    name: str
    x: float
    y: float
    words: str
    colour: Role = "accent"
    label: str = ""
    hollow: bool = False
    above: bool = False


@dataclass(frozen=True, slots=True)
class Level:
    """A dashed line across, with its words."""

    y: float
    words: str
    colour: Role = "bad"


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a bar."""

    name: str
    size: float
    words: str
    colour: Role = "accent"
    hollow: bool = False


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar under a name: its pieces one after the other, and what is said at its end."""

    name: str
    parts: Sequence[Part]
    said: str
    detail: str = ""
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Plot:
    """Curves and dots over two axes. `where` says an x under the pointer."""

    title: str
    x: Axis
    y: Axis
    lines: Sequence[Line]
    points: Sequence[Point] = ()
    levels: Sequence[Level] = ()
    note: str = ""
    alt: str = ""
    where: Mapping[float, str] = field(default_factory=dict)
    kinds: Sequence[tuple[str, Role]] = ()  # what the dots' colours mean

    def payload(self) -> dict[str, object]:
        """What the component draws."""
        return {
            "kind": "lines",
            "title": self.title,
            "note": self.note,
            "alt": self.alt or self.title,
            "x": _axis(self.x),
            "y": _axis(self.y),
            "lines": [self._line(line) for line in self.lines],
            "points": [_point(point, self.x, self.y) for point in self.points],
            "levels": [
                {"at": self.y.place(level.y), "words": level.words, "colour": level.colour}
                for level in self.levels
                if 0 <= self.y.place(level.y) <= 1
            ],
            "legend": [
                *(
                    {"name": line.name, "colour": line.colour, "dash": line.dash}
                    for line in self.lines
                    if len(self.lines) > 1
                ),
                *({"name": name, "colour": colour, "dash": "block"} for name, colour in self.kinds),
            ],
        }

    def _line(self, line: Line) -> dict[str, object]:
        shown = [
            (i, x, y) for i, (x, y) in enumerate(zip(line.xs, line.ys, strict=True)) if 0 <= self.y.place(y) <= 1.0001
        ]
        return {
            "name": line.name,
            "at": [[round(self.x.place(x), 5), round(self.y.place(y), 5)] for _, x, y in shown],
            "words": [line.words[i] for i, _, _ in shown] if line.words else [],
            "wheres": [self.where.get(x, f"{x:,.3g}") for _, x, _ in shown],
            "colour": line.colour,
            "dash": line.dash,
            "wide": line.wide,
        }


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars on one scale, the longest as wide as the place."""

    title: str
    bars: Sequence[Bar]
    note: str = ""
    alt: str = ""

    def payload(self) -> dict[str, object]:
        """What the component draws."""
        most = max((sum(part.size for part in bar.parts) for bar in self.bars), default=0) or 1
        kinds = {part.name: part for bar in self.bars for part in bar.parts}
        return {
            "kind": "bars",
            "title": self.title,
            "note": self.note,
            "alt": self.alt or self.title,
            "legend": [
                {"name": name, "colour": part.colour, "dash": "hollow" if part.hollow else "block"}
                for name, part in kinds.items()
            ]
            if any(len(bar.parts) > 1 for bar in self.bars)
            else [],
            "rows": [
                {
                    "name": bar.name,
                    "detail": bar.detail,
                    "said": bar.said,
                    "strong": bar.strong,
                    "parts": [
                        {
                            "name": part.name,
                            "share": round(part.size / most, 5),
                            "words": part.words,
                            "colour": part.colour,
                            "hollow": part.hollow,
                        }
                        for part in bar.parts
                    ],
                }
                for bar in self.bars
            ],
        }


def show(picture: Plot | Bars, *, key: str, size: Size = "tall") -> None:
    """Draw it: "tall" where it stands alone, "mid" above a button, "low" and "rest" one above the other."""
    with st.container(key=f"{size}_{key}"):
        lab_chart.mount(picture.payload(), key=key, height=HEIGHTS[size])


def log_axis(title: str, low: float, high: float, unit: str = "", *, ticks: Sequence[float] = ()) -> Axis:
    """An axis in powers of ten from below `low` to above `high`; with `ticks` of one's own it ends where asked."""
    if ticks:
        return Axis(title, low, high, tuple((tick, f"{tick:,.0f}") for tick in ticks), log=True)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    last = max(last, first + 1)
    every = math.ceil((last - first) / MOST_TICKS)
    return Axis(
        title,
        10.0**first,
        10.0**last,
        tuple((10.0**power, round_text(10.0**power, unit)) for power in range(first, last + 1, every)),
        log=True,
    )


def axis(title: str, high: float, unit: str = "", *, low: float = 0.0, is_cut: bool = False) -> Axis:
    """An axis from `low` to the first round number at or above `high`; cut, it ends at `high` itself."""
    rough = (high - low) / 4 or 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(size * power for size in (1, 2, 2.5, 5, 10) if size * power >= rough)
    count = math.ceil((high - low) / step - 1e-9) or 1
    values = [low + step * i for i in range(count + 1)]
    last = high if is_cut else values[-1]
    return Axis(title, low, last, tuple((value, round_text(value, unit)) for value in values if value <= last))


def round_text(value: float, unit: str = "") -> str:
    """A round number without the zeros that say nothing: 1e9, "B" -> "1 GB"; 1e4 -> "10,000"."""
    if not unit and 1e-4 <= value < 1e6:
        return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
    words = number_text(value, unit)
    return re.sub(r"\.?0+(?= |$)", "", words) if "." in words else words


def _axis(one: Axis) -> dict[str, object]:
    ticks = [[round(one.place(value), 5), words] for value, words in one.ticks]
    return {"title": one.title, "ticks": ticks}


def _point(point: Point, x: Axis, y: Axis) -> dict[str, object]:
    return {
        "name": point.name,
        "at": [round(x.place(point.x), 5), round(y.place(point.y), 5)],
        "words": point.words,
        "colour": point.colour,
        "label": point.label,
        "hollow": point.hollow,
        "above": point.above,
    }
