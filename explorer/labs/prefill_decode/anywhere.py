"""The pair on any machine, for any model: what either phase waits for, and how long it takes at least."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from engine.costs.bytes import PRECISIONS
from engine.costs.shape import ModelShape
from engine.measure.hardware import HARDWARE
from explorer.labs import charts, controls
from explorer.labs.model_choice import choose_model
from explorer.labs.prefill_decode import figures, here, table, words
from explorer.labs.prefill_decode.priced import Rates, Sizes, request
from explorer.labs.shell import Source, section, source

if TYPE_CHECKING:
    from engine.llm_engine import LLMEngine

HERE = "this machine, measured"
MOST = 32_768
SHOWN = {
    "request": "",
    "phase": "",
    "FLOPs": "FLOP",
    "bytes moved": "B",
    "FLOP per byte": "",
    "arithmetic alone, ms": "ms",
    "memory alone, ms": "ms",
    "bound by": "",
    "tokens per second at most": "",
}
ASSUMED = (
    "One request alone, at the full rates stated, arithmetic and memory overlapping perfectly within a forward pass: "
    "nothing is quicker, real programs are slower. Weights are read once a pass, keys and values written once and "
    "read once a turn; activations are left out, and so is what several devices have to tell each other."
)


@dataclass(frozen=True, slots=True)
class Machine:
    """Where it runs: rates of all devices together, who says so, and the memory of each, 0 where it is not stated."""

    rates: Rates
    origin: Source
    memory: float
    devices: int


def show(engine: LLMEngine) -> None:
    """Controls, the verdict, and the charts."""
    section("Any model on any machine", "The same pair by formula, in both regimes.")
    model = choose_model()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        weights = controls.choice("Weights", list(PRECISIONS), url="w", default="bf16")
        cache = controls.choice("Keys and values", list(PRECISIONS), url="kv", default="bf16")
    machine = _machine(engine, weights)
    with st.container(horizontal=True):
        long = controls.whole("Long prompt or answer", url="cl", default=500, low=1, high=MOST)
        short = controls.whole("Short one", url="cs", default=20, low=1, high=MOST)
    if model is None or machine is None:
        return
    sizes = Sizes(model.shape, PRECISIONS[weights], PRECISIONS[cache])
    long = _within(long, short, model.shape, model.name)
    requests = [request(sizes, long, short), request(sizes, short, long)]
    too_large = words.fit(sizes, machine.memory, machine.devices)
    if too_large:
        st.text(too_large)
    st.text(words.regime(requests[0], sizes, machine.rates))
    charts.show(
        figures.computed(requests, machine.rates),
        key="phases-computed",
        table=table.computed_rows(requests, machine.rates),
    )
    st.table(table.shown(table.computed_rows(requests, machine.rates), SHOWN), hide_index=True)
    charts.show(
        figures.prompts(sizes, machine.rates, long),
        key="sweep-by-length",
        table=table.prompt_rows(sizes, machine.rates, long),
    )
    source("computed", ASSUMED)
    source("published", f"{model.name}: {model.source}.")
    source(machine.origin, f"{machine.rates.name}: {machine.rates.source}.")


def _machine(engine: LLMEngine, weights: str) -> Machine | None:
    """The machine's rates for these weights; None where no rate of arithmetic is published, and the page says so."""
    measured = here.rates_here(engine)
    options = [*HARDWARE, *([HERE] if measured else [])]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        picked = controls.choice("Machine", options, url="on", default="H100 SXM")
        devices = controls.whole("Devices", url="devices", default=1, low=1, high=10_000)
    if picked == HERE and measured is not None:
        return Machine(_together(measured, devices), "measured", 0, devices)
    device = HARDWARE[picked]
    peak = device.best_peak(weights)
    if peak is None:
        st.text(
            f"No rate of arithmetic is published for {picked} with {weights} weights, so only half of this could be "
            "said. Choose another machine or other weights."
        )
        return None
    published = Rates(picked, device.bandwidth, peak, device.source)
    return Machine(_together(published, devices), "published", device.memory, devices)


def _together(rates: Rates, devices: int) -> Rates:
    """Several devices as one that is so many times as fast."""
    if devices == 1:
        return rates
    return Rates(f"{devices:,} × {rates.name}", devices * rates.bandwidth, devices * rates.peak, rates.source)


def _within(long: int, short: int, shape: ModelShape, model: str) -> int:
    """The long part cut to what the model reads, said in words."""
    limit = shape.context_limit
    if limit is None or long + short - 1 <= limit:
        return long
    most = max(1, limit - short + 1)
    st.text(f"{model} reads {limit:,} positions; {long:,} and {short:,} need more, so {most:,} are priced.")
    return most
