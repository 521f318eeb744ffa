"""The numbers of a race as a table: what the charts are drawn from, and what is saved as CSV."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from explorer.labs.without_cache.totals import Bill, Quantity

if TYPE_CHECKING:
    from engine.studies.uncached import RaceStep

Row = dict[str, object]


def quantity_rows(bill: Bill, quantity: Quantity, *, running: bool) -> list[Row]:
    """One row per step of one quantity, both loops."""
    cached = bill.cached.running(quantity) if running else bill.cached.of(quantity)
    uncached = bill.uncached.running(quantity) if running else bill.uncached.of(quantity)
    unit = f"{quantity} so far" if running else quantity
    return [
        {"step": step, f"{unit}, cached": a, f"{unit}, uncached": b}
        for step, (a, b) in enumerate(zip(cached, uncached, strict=True))
    ]


def step_rows(steps: Sequence[RaceStep], texts: Sequence[str]) -> list[Row]:
    """One row per step: what was drawn, and how far the two loops' logits lie apart."""
    return [
        {
            "step": step.index,
            "token": text,
            "id, cached": step.cached.token_id,
            "id, uncached": step.uncached.token_id,
            "same": step.agrees,
            "largest logit difference": step.logit_difference,
            "lead of the likeliest": step.lead,
            "ran first": step.first,
        }
        for step, text in zip(steps, texts, strict=True)
    ]
