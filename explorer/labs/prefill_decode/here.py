"""The model that is loaded and the machine it runs on, as the cost model wants them."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import streamlit as st

from explorer.hosting.limits import Hosting
from explorer.labs import progress
from explorer.labs.charts import number_text
from explorer.labs.prefill_decode.priced import Rates, Sizes
from explorer.labs.prefill_decode.table import plain
from explorer.labs.shell import source
from explorer.labs.without_cache.totals import knows_arithmetic
from explorer.say import words_beside

if TYPE_CHECKING:
    from engine.llm_engine import LLMEngine

say = words_beside(__file__)

NUMBER_BYTES = MappingProxyType({"float32": 4.0, "bfloat16": 2.0, "float16": 2.0})

_RATES = "loupe_rates_here"


def sizes_here(engine: LLMEngine) -> Sizes:
    """The loaded model, its cache in the same numbers as its weights."""
    size = NUMBER_BYTES[engine.info.dtype]
    return Sizes(engine.info.shape, size, size)


def is_priced(engine: LLMEngine) -> bool:
    """Whether the loaded architecture's arithmetic is known."""
    return knows_arithmetic(engine.info.shape)


def rates_here(engine: LLMEngine) -> Rates | None:
    """This machine at its best, where it was measured; None where it was not."""
    found = engine.machine
    if found is None:
        return None
    return Rates(
        say("here.name"),
        found.gemv_bytes_per_s.best,
        found.gemm_flops_per_s.best,
        say("here.said", sweeps=found.gemv_bytes_per_s.passes, products=found.gemm_flops_per_s.passes, at=found.at),
    )


def this_machine(engine: LLMEngine, hosting: Hosting) -> None:
    """What this machine does at best, or a button that measures it; in a class, why there is none."""
    rates = rates_here(engine)
    if rates is not None:
        source("measured", say("here.source", dtype=engine.info.dtype, rates=words_of(rates), source=rates.source))
    elif hosting.is_hosted:
        st.caption(say("here.not_in_a_class"))
    else:
        st.caption(say("here.least_beside"))
        progress.task("machine", say("here.measure"), lambda _: engine.measure_machine(), inputs=engine.info.id)
        if engine.machine is not None:
            remember(engine)
            st.rerun()


def remember(engine: LLMEngine) -> None:
    """Keep what this machine does at best for the controls, which are drawn before any model is asked for."""
    st.session_state[_RATES] = rates_here(engine)


def remembered() -> Rates | None:
    """What this machine does at best, where it is known by now."""
    rates: Rates | None = st.session_state.get(_RATES)
    return rates


def words_of(rates: Rates) -> str:
    """Bandwidth, peak and ridge as one reads them."""
    return say(
        "here.rates",
        bandwidth=number_text(rates.bandwidth, "B"),
        peak=number_text(rates.peak, "FLOP"),
        ridge=plain(rates.ridge),
    )
