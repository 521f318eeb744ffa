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
from explorer.say import words_beside

if TYPE_CHECKING:
    from engine.llm_engine import LLMEngine

say = words_beside(__file__)


def here() -> None:
    shell.section(say("here.title"), say("here.why"))
    session = live.session_or_offer(say("here.needs"))
    engine = live.loaded_engine()
    if session is None or engine is None:
        return
    info = engine.info
    if not info.shape.knows_weights:
        st.text(say("here.cannot", name=info.name, only_cache=ONLY_CACHE))
        return
    rates = _machine(engine)
    if rates is None:
        return
    precision = SHORT.get(info.dtype, "fp32")
    levers = Levers(weights=precision, cache=precision)
    size = info.weight_bytes // info.parameters
    mine = measured_points(session.records, info.shape, size)
    if not mine:
        st.text(say("here.no_step"))
    points = (*computed_points(info.shape, rates, max(1, session.records[-1].kv_len), levers), *mine)
    charts.show(
        figures.roofline(points, rates, levers, charts.palette()),
        key="roofline_here",
        table=point_rows(points),
        alt=say("here.alt", mine=len(mine), name=info.name),
    )
    shell.source("measured", say("here.measured", said=rates.said))
    shell.source("computed", say("here.computed"))


def _machine(engine: LLMEngine) -> Rates | None:
    """This machine's speed, measured when somebody asks."""
    if runtime().hosting.is_hosted:
        st.text(say("here.shared"))
        return None
    found = progress.task(
        "machine", say("here.measure"), lambda report: engine.measure_machine(again=True), again=say("here.again")
    )
    found = found or engine.machine
    if found is None:
        st.text(say("here.takes"))
        return None
    with st.container(horizontal=True):
        read, multiply = found.gemv_bytes_per_s, found.gemm_flops_per_s
        number_card(
            say("here.reads"), number_text(read.best, "B/s"), say("here.median", median=number_text(read.median, "B/s"))
        )
        number_card(
            say("here.multiplies"),
            number_text(multiply.best, "FLOP/s"),
            say("here.median", median=number_text(multiply.median, "FLOP/s")),
        )
        number_card(say("here.ridge_name"), say("here.ridge", ridge=f"{found.ridge:.3g}"), say("here.below"))
    return measured(found)


def number_card(label: str, value: str, small: str) -> None:
    with st.container(border=True):
        st.metric(label, value)
        st.caption(shell.escaped(small))
