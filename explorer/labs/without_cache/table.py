"""The numbers of a race as a table: what the charts are drawn from, and what is saved as CSV."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from explorer.labs.without_cache.totals import Bill, Quantity
from explorer.say import words_beside

if TYPE_CHECKING:
    from engine.studies.uncached import RaceStep

say = words_beside(__file__)

Row = dict[str, object]


def quantity_rows(bill: Bill, quantity: Quantity, *, running: bool) -> list[Row]:
    """One row per step of one quantity, both loops."""
    cached = bill.cached.running(quantity) if running else bill.cached.of(quantity)
    uncached = bill.uncached.running(quantity) if running else bill.uncached.of(quantity)
    unit = say("table.so_far", quantity=quantity) if running else quantity
    return [
        {"step": step, say("table.cached", unit=unit): a, say("table.uncached", unit=unit): b}
        for step, (a, b) in enumerate(zip(cached, uncached, strict=True))
    ]


def step_rows(steps: Sequence[RaceStep], texts: Sequence[str]) -> list[Row]:
    """One row per step: what was drawn, and how far the two loops' logits lie apart."""
    return [
        {
            "step": step.index,
            "token": text,
            say("table.id_cached"): step.cached.token_id,
            say("table.id_uncached"): step.uncached.token_id,
            "same": step.agrees,
            say("table.logits"): step.logit_difference,
            say("table.lead"): step.lead,
            say("table.first"): step.first,
        }
        for step, text in zip(steps, texts, strict=True)
    ]
