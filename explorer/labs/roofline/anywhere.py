"""The second part: any model on any hardware, and the levers that the literature names."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from explorer.labs import charts, controls, shell
from explorer.labs.charts import number_text
from explorer.labs.model_choice import choose_model
from explorer.labs.roofline import choices, figures
from explorer.labs.roofline.curves import BatchCurve, batch_curve
from explorer.labs.roofline.here import number_card
from explorer.labs.roofline.levers import bars, move
from explorer.labs.roofline.lower_bounds import Floor, Levers, Rates, devices_to_hold, floor_of
from explorer.labs.roofline.points import computed_points
from explorer.labs.roofline.tables import bar_rows, curve_rows, point_rows


def anywhere() -> None:
    shell.section("Any model on any hardware", "Pick both, then move what the literature names, one lever or several.")
    picked = choose_model(default="Llama 3.1 70B")
    left, right = st.columns(2)
    with left:
        rates = choices.rates()
    with right:
        context = controls.ladder("Tokens in each cache", choices.CONTEXTS, url="ctx", default=2048)
    if picked is None or rates is None:
        return
    for said in picked.shape.assumed:
        st.text(f"Taken for granted: {said}.")
    base, amounts, on = choices.levers(choices.precision_of(picked.shape))
    moved = move(base, amounts, on)
    floor = floor_of(picked.shape, rates, context, moved)
    _sums(picked.shape.parameters.total, floor, rates, moved)
    found = bars(picked.shape, rates, context, base, amounts, on)
    sides: tuple[Literal["time", "rate"], ...] = ("time", "rate")
    for side, what in zip(st.columns(2), sides, strict=True):
        with side:
            figure = figures.lever_bars(found, what, charts.palette())
            charts.show(figure, key=f"levers_{what}", table=bar_rows(found))
    shell.source("computed", "bytes a pass moves over bandwidth, or its operations over the peak, whichever is longer")
    shell.source("published", f"{picked.name}: {picked.source}. {rates.name}: {rates.said}")
    left, right = st.columns(2)
    with left:
        shell.section("Its roofline")
        points = computed_points(picked.shape, rates, context, moved)
        charts.show(figures.roofline(points, rates, moved, charts.palette()), key="roofline", table=point_rows(points))
    with right:
        shell.section("Step time against batch")
        curve = batch_curve(picked.shape, rates, context, moved)
        charts.show(figures.batch_curves(curve, charts.palette()), key="batch", table=curve_rows(curve))
    st.text(_turns(curve, context))


def _sums(parameters: int, floor: Floor, rates: Rates, levers: Levers) -> None:
    with st.container(horizontal=True):
        number_card(*_count(parameters), f"{number_text(floor.streamed, 'B')} read in a pass")
        number_card("to hold", number_text(floor.held, "B"), f"{number_text(floor.cache, 'B')} of it caches")
        number_card("lower bound, per token", number_text(floor.token_s, "s"), f"{floor.bound}-bound")
        number_card("tokens per second", number_text(floor.rate), f"{number_text(1 / floor.token_s)} for each request")
    needed = devices_to_hold(floor, rates)
    if needed is not None and needed > levers.devices:
        memory = number_text((rates.memory or 0) * levers.devices, "B")
        st.warning(
            shell.escaped(
                f"{levers.devices} × {rates.name} {'does' if levers.devices == 1 else 'do'} not hold this: "
                f"{number_text(floor.held, 'B')} to hold, {memory} there. It takes {needed}, or fewer bytes a weight. "
                "The lower bound below is what the bandwidth would allow."
            ),
            icon=None,
        )


def _turns(curve: BatchCurve, context: int) -> str:
    if curve.critical is None or curve.context is None:
        return "No peak is published for this hardware, so only memory bounds the step here."
    words = f"The linear layers are compute-bound from batch {curve.critical:,.0f} on."
    if curve.context == float("inf"):
        return f"{words} Attention itself is compute-bound here, so a long context does not change that."
    where = "This one is longer." if context > curve.context else "This one is shorter."
    return (
        f"{words} Caches of more than {curve.context:,.0f} tokens keep the step as a whole memory-bound at any "
        f"batch. {where}"
    )


def _count(parameters: int) -> tuple[str, str]:
    """A unit for so many parameters, and their number in it: ("billion parameters", "70.6")."""
    unit, size = ("billion", 1e9) if parameters >= 1e9 else ("million", 1e6)
    return f"{unit} parameters", f"{parameters / size:.3g}"
