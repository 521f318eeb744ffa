"""A row of the table, and the table as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from benchmarks.timing import Timed

Wanted = Literal["at most", "at least", "report"]


@dataclass(frozen=True, slots=True)
class Row:
    """One budget, and what was measured.

    value   by the best rounds where it is a ratio of times
    median  the same ratio by the medians; None where there is one number only
    target  None where the row is for information
    parts   what the value was made of: ms, GB/s, bytes, each with its unit in its name
    """

    what: str
    value: float
    unit: str
    wanted: Wanted = "report"
    target: float | None = None
    median: float | None = None
    parts: Mapping[str, float] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without one."""
        if self.target is None:
            return None
        return self.value <= self.target if self.wanted == "at most" else self.value >= self.target


def ratio(
    what: str, over: Timed, under: Timed, wanted: Wanted = "report", target: float | None = None, *, factor: float = 1.0
) -> Row:
    """How many times as long `over` takes as `under` times `factor`."""
    parts = {
        "numerator_best_ms": over.best,
        "numerator_median_ms": over.median,
        "denominator_best_ms": under.best * factor,
        "denominator_median_ms": under.median * factor,
    }
    median = over.median / (under.median * factor)
    return Row(what, over.best / (under.best * factor), "x", wanted, target, median, parts)


def table(rows: Sequence[Row]) -> str:
    """Text columns: what, measured, median, target, verdict."""
    lines = [("", "measured", "by medians", "target", "")]
    for row in rows:
        verdict = {None: "", True: "met", False: "missed"}[row.met]
        goal = "" if row.target is None else f"{row.wanted} {row.target:g} {row.unit}"
        median = "" if row.median is None else f"{row.median:.2f} {row.unit}"
        lines.append((row.what, f"{row.value:.2f} {row.unit}", median, goal, verdict))
    widths = [max(len(line[i]) for line in lines) for i in range(5)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)


def write(path: Path, machine: Mapping[str, object], rows: Sequence[Row]) -> None:
    """The machine and every row as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    found = [{**asdict(row), "parts": dict(row.parts), "met": row.met} for row in rows]
    path.write_text(json.dumps({"machine": dict(machine), "rows": found}, indent=2) + "\n", encoding="utf-8")
