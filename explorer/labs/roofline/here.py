"""The first part: the run on the Step page under what this machine can do at most."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from explorer.hosting.runtime import runtime
from explorer.labs import charts, live, progress, shell
from explorer.labs.charts import number_text
from explorer.labs.model_choice import ONLY_CACHE
from explorer.labs.roofline import figures
from explorer.labs.roofline.lower_bounds import SHORT, Levers, Rates, measured
from explorer.labs.roofline.points import computed_points, measured_points
from explorer.labs.roofline.tables import point_rows

if TYPE_CHECKING:
    from engine.llm_engine import LLMEngine


def here() -> None:
    shell.section("This model on this machine", "The run on the Step page under what this machine can do at most.")
    session = live.session_or_offer("This roofline")
    engine = live.loaded_engine()
    if session is None or engine is None:
        return
    info = engine.info
    if not info.shape.knows_weights:
        st.text(f"{info.name}: {ONLY_CACHE} So there is nothing to draw it by.")
        return
    rates = _machine(engine)
    if rates is None:
        return
    precision = SHORT.get(info.dtype, "fp32")
    levers = Levers(weights=precision, cache=precision)
    size = info.weight_bytes // info.parameters
    mine = measured_points(session.records, info.shape, size)
    if not mine:
        st.text("This run has no step that was timed alone: it was shared, or rebuilt. Take a step on the Step page.")
    points = (*computed_points(info.shape, rates, max(1, session.records[-1].kv_len), levers), *mine)
    charts.show(
        figures.roofline(points, rates, levers, charts.palette()),
        key="roofline_here",
        table=point_rows(points),
        alt=f"Roofline of this machine: {len(mine)} measured steps of {info.name} under bandwidth and peak",
    )
    shell.source("measured", f"{rates.said}. Points: the forward passes of this tab's run, as the Step page shows them")
    shell.source("computed", "operations and bytes of prefill and decode by the cost model, at the roof's height")


def _machine(engine: LLMEngine) -> Rates | None:
    """This machine's speed, measured when somebody asks."""
    if runtime().hosting.is_hosted:
        st.text("This Loupe is shared: measuring the machine would slow everybody down, so it is not done here.")
        return None
    found = progress.task(
        "machine", "Measure this machine", lambda report: engine.measure_machine(again=True), again="Measure again"
    )
    found = found or engine.machine
    if found is None:
        st.text("Under a second: reading as a decode step reads, then multiplying. Nothing else runs meanwhile.")
        return None
    with st.container(horizontal=True):
        read, multiply = found.gemv_bytes_per_s, found.gemm_flops_per_s
        number_card("reads, best", number_text(read.best, "B/s"), f"median {number_text(read.median, 'B/s')}")
        number_card(
            "multiplies, best", number_text(multiply.best, "FLOP/s"), f"median {number_text(multiply.median, 'FLOP/s')}"
        )
        number_card("ridge", f"{found.ridge:.3g} FLOP/B", "below it, memory decides")
    return measured(found)


def number_card(label: str, value: str, small: str) -> None:
    with st.container(border=True):
        st.metric(label, value)
        st.caption(shell.escaped(small))
