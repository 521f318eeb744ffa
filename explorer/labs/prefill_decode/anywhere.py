"""The pair on any machine, for any model: what either phase waits for, and how long it takes at least."""

from __future__ import annotations

from dataclasses import dataclass, replace

import streamlit as st

from engine.costs.bytes import PRECISIONS
from engine.costs.shape import ModelShape
from engine.measure.hardware import HARDWARE
from explorer.labs import charts, controls, shell
from explorer.labs.model_choice import ChosenModel, choose_model
from explorer.labs.prefill_decode import figures, here, table, words
from explorer.labs.prefill_decode.priced import Rates, Request, Sizes, request
from explorer.labs.shell import Source, source
from explorer.say import words_beside

say = words_beside(__file__)

HERE = say("anywhere.here")
MOST = 32_768
SHOWN = {
    say("table.request"): "",
    say("table.phase"): "",
    say("table.flops"): "FLOP",
    say("table.moved"): "B",
    say("table.intensity"): "",
    say("table.arithmetic_alone_ms"): "ms",
    say("table.memory_alone_ms"): "ms",
    say("table.bound"): "",
    say("table.per_second_at_most"): "",
}
ASSUMED = say("anywhere.assumed")


@dataclass(frozen=True, slots=True)
class Machine:
    """Where it runs: rates of all devices together, who says so, and the memory of each, 0 where it is not stated."""

    rates: Rates
    origin: Source
    memory: float
    devices: int


@dataclass(frozen=True, slots=True)
class Case:
    """What the controls ask for: a model as it is held, a machine, and the two requests."""

    model: ChosenModel
    sizes: Sizes
    machine: Machine
    pair: tuple[Request, Request]


def ask() -> Case | None:
    """The controls; None where they give nothing to compute, and the page says why."""
    model = choose_model()
    weights = controls.choice(say("anywhere.weights"), list(PRECISIONS), url="w", default="bf16")
    machine = _machine(weights)
    with shell.more("pd_more", ("cl", "cs", "devices", "kv")):
        long = controls.whole(say("anywhere.long"), url="cl", default=500, low=1, high=MOST)
        short = controls.whole(say("anywhere.short"), url="cs", default=20, low=1, high=MOST)
        devices = controls.whole(say("anywhere.devices"), url="devices", default=1, low=1, high=10_000)
        cache = controls.choice(say("anywhere.cache_as"), list(PRECISIONS), url="kv", default="bf16")
    if model is None or machine is None:
        return None
    machine = replace(machine, rates=_together(machine.rates, devices), devices=devices)
    sizes = Sizes(model.shape, PRECISIONS[weights], PRECISIONS[cache])
    long = _within(long, short, model.shape, model.name)
    return Case(model, sizes, machine, (request(sizes, long, short), request(sizes, short, long)))


def show(case: Case) -> None:
    """What is folded away: what bounds either phase, and prompts of other lengths."""
    rates, pair = case.machine.rates, list(case.pair)
    part = shell.details(say("anywhere.bounds"), key="pd_bounds")
    if part:
        with part:
            st.text(words.regime(case.pair[0], case.sizes, rates))
            rows = table.computed_rows(pair, rates)
            charts.table(table.shown(rows, SHOWN), name="computed phases")
            source("computed", ASSUMED)
            source("published", say("anywhere.source", name=case.model.name, source=case.model.source))
            source(case.machine.origin, say("anywhere.source", name=rates.name, source=rates.source))
    part = shell.details(say("anywhere.turn"), key="pd_lengths")
    if part:
        with part:
            long = case.pair[0].prompt_len
            charts.show(
                figures.prompts(case.sizes, rates, long),
                key="sweep-by-length",
                table=table.prompt_rows(case.sizes, rates, long),
            )


def too_large(case: Case) -> str:
    """Whether the weights fit; empty where they do."""
    return words.fit(case.sizes, case.machine.memory, case.machine.devices)


def _machine(weights: str) -> Machine | None:
    """The machine's rates for these weights; None where no rate of arithmetic is published, and the page says so."""
    measured = here.remembered()
    options = [*HARDWARE, *([HERE] if measured else [])]
    picked = controls.choice(say("anywhere.machine"), options, url="on", default="H100 SXM")
    if picked == HERE and measured is not None:
        return Machine(measured, "measured", 0, 1)
    device = HARDWARE[picked]
    peak = device.best_peak(weights)
    if peak is None:
        st.text(say("anywhere.no_rate", picked=picked, weights=weights))
        return None
    return Machine(Rates(picked, device.bandwidth, peak, device.source), "published", device.memory, 1)


def _together(rates: Rates, devices: int) -> Rates:
    """Several devices as one that is so many times as fast."""
    if devices == 1:
        return rates
    return Rates(
        say("anywhere.several", devices=f"{devices:,}", name=rates.name),
        devices * rates.bandwidth,
        devices * rates.peak,
        rates.source,
    )


def _within(long: int, short: int, shape: ModelShape, model: str) -> int:
    """The long part cut to what the model reads, said in words."""
    limit = shape.context_limit
    if limit is None or long + short - 1 <= limit:
        return long
    most = max(1, limit - short + 1)
    st.text(
        say(
            "anywhere.too_long", model=model, limit=f"{limit:,}", long=f"{long:,}", short=f"{short:,}", most=f"{most:,}"
        )
    )
    return most
