"""Charts of a race: what a step costs each loop, what it adds up to, and how far the two disagree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import plotly.graph_objects as go

from explorer.labs.without_cache.totals import Bill, Quantity
from explorer.say import words_beside

if TYPE_CHECKING:
    from engine.studies.uncached import RaceStep

say = words_beside(__file__)

CACHED, UNCACHED = say("figures.cached"), say("figures.uncached")
MARK = "#8b96a8"  # seen on a light and on a dark ground
_AXIS = {"positions": "positions", "pairs": say("figures.pairs"), "flops": "FLOPs", "ms": "milliseconds"}
_STEP_RULES: dict[Quantity, tuple[str, str]] = {
    "positions": (say("figures.rule_cached_positions"), "P + t"),
    "pairs": (say("figures.rule_cached_pairs"), "(P + t)(P + t + 1) / 2"),
    "flops": ("2·N_mm + 4·L·H·D·(P + t)", say("figures.rule_uncached_flops")),
    "ms": (say("figures.rule_ms"), say("figures.rule_ms")),
}
_TOTAL_RULES: dict[Quantity, tuple[str, str]] = {
    "positions": ("P + N − 1", "N·P + N(N − 1) / 2"),
    "pairs": ("P(P + 1) / 2 + (N − 1)P + N(N − 1) / 2", say("figures.rule_uncached_pairs_total")),
    "flops": (say("figures.rule_flops_total"), say("figures.rule_flops_total")),
    "ms": (say("figures.rule_ms_total"), say("figures.rule_ms_total")),
}


def per_step(bill: Bill, quantity: Quantity, *, log: bool = False) -> go.Figure:
    """What each step costs the two loops."""
    return _pair(bill, quantity, bill.cached.of(quantity), bill.uncached.of(quantity), _STEP_RULES[quantity], log)


def in_all(bill: Bill, quantity: Quantity, *, log: bool = False) -> go.Figure:
    """What the two loops have paid up to each step. Times get a mark where the cached loop goes ahead for good."""
    cached, uncached = bill.cached.running(quantity), bill.uncached.running(quantity)
    figure = _pair(bill, quantity, cached, uncached, _TOTAL_RULES[quantity], log, is_total=True)
    if quantity == "ms" and bill.ahead_from is not None:
        figure.add_vline(
            x=bill.ahead_from,
            line={"dash": "dot", "width": 2, "color": MARK},
            annotation_position="top right",
            annotation_text=say("figures.ahead", ahead_from=bill.ahead_from),
        )
    return figure


def disagreement(steps: Sequence[RaceStep]) -> go.Figure:
    """The largest difference of logits at each step, beside what it would take to turn a greedy choice."""
    index = [step.index for step in steps]
    figure = go.Figure(layout={"title": say("figures.logits_title")})
    figure.add_scatter(
        x=index,
        y=[step.logit_difference or None for step in steps],
        mode="lines+markers",
        name=say("figures.largest"),
        hovertemplate=say.unfilled("figures.largest_hover"),
    )
    figure.add_scatter(
        x=index,
        y=[step.lead / 2 or None for step in steps],
        mode="lines",
        line={"dash": "dash"},
        name=say("figures.half_lead"),
        hovertemplate=say.unfilled("figures.half_lead_hover"),
    )
    apart = [step for step in steps if not step.agrees]
    if apart:
        figure.add_scatter(
            x=[step.index for step in apart],
            y=[step.logit_difference for step in apart],
            mode="markers",
            marker={"symbol": "x", "size": 12},
            name=say("figures.other_token"),
            hovertemplate=say.unfilled("figures.other_hover"),
        )
    figure.update_xaxes(title=say("figures.step_axis"))
    figure.update_yaxes(title="logits", type="log", exponentformat="power", dtick=1)
    return figure


def _pair(
    bill: Bill,
    quantity: Quantity,
    cached: Sequence[float],
    uncached: Sequence[float],
    rules: tuple[str, str],
    log: bool,
    *,
    is_total: bool = False,
) -> go.Figure:
    axis = say("figures.axis_so_far", axis=_AXIS[quantity]) if is_total else _AXIS[quantity]
    digits = ",.3s" if quantity == "flops" else ",.1f" if quantity == "ms" else ","
    figure = go.Figure(layout={"title": say("figures.each_title", axis=axis.capitalize())})
    inputs = f"P = {bill.prompt_len:,}"
    counter = "N = %{customdata}" if is_total else "t = %{x}"
    for name, values, rule in ((CACHED, cached, rules[0]), (UNCACHED, uncached, rules[1])):
        figure.add_scatter(
            x=list(range(len(values))),
            y=list(values),
            name=name,
            mode="lines+markers",
            marker={"size": 4},
            customdata=[step + 1 for step in range(len(values))],
            hovertemplate=say("figures.hover", digits=digits, rule=rule, inputs=inputs, counter=counter, name=name),
        )
    figure.update_xaxes(title=say("figures.step_axis"))
    figure.update_yaxes(title=axis, type="log" if log else "linear", rangemode="normal" if log else "tozero")
    return figure
