"""The first part: any model on any hardware, and the levers that the literature names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import streamlit as st

from explorer.labs import charts, controls, picture, shell
from explorer.labs.charts import number_text
from explorer.labs.model_choice import ChosenModel, choose_model
from explorer.labs.roofline import answer, choices, figures
from explorer.labs.roofline.curves import BatchCurve, batch_curve
from explorer.labs.roofline.here import number_card
from explorer.labs.roofline.levers import FIELDS, Bar, bars, describe, move
from explorer.labs.roofline.lower_bounds import Floor, Levers, Rates, floor_of
from explorer.labs.roofline.points import Point, computed_points
from explorer.labs.roofline.tables import bar_rows, curve_rows, point_rows

FORMULA = "bytes a pass moves over bandwidth, or its operations over the peak, whichever is longer"


def anywhere(stage: shell.Stage) -> None:
    """The answer and its picture for what the controls pick; then what moves it, folded away."""
    with stage.controls:
        picked = choose_model(default="Llama 3.1 70B")
        rates = choices.rates()
        context = controls.ladder("Tokens in each cache", choices.CONTEXTS, url="ctx", default=2048)
    if picked is None or rates is None:
        return
    case = _levers(picked, rates, context)
    _open(stage, picked, case)
    part = shell.details("What is read, held and multiplied", key="roof_numbers")
    if part:
        with part:
            _sums(picked.shape.parameters.total, floor_of(picked.shape, rates, context, case.moved))
            charts.numbers(point_rows(case.points), "roofline")
            for said in picked.shape.assumed:
                st.text(f"Taken for granted: {said}.")
            shell.source("published", f"{picked.name}: {picked.source}. {rates.name}: {rates.said}")
    part = shell.details("Step time against batch", key="roof_batch")
    if part:
        with part:
            curve = batch_curve(picked.shape, rates, context, case.moved)
            charts.show(figures.batch_curves(curve, charts.palette()), key="batch", table=curve_rows(curve))
            st.text(_turns(curve, context))


@dataclass(frozen=True, slots=True)
class Case:
    """What is looked at: a machine, the levers that are moved, in words too, and the steps under its roof."""

    rates: Rates
    context: int
    moved: Levers
    words: str
    points: tuple[Point, ...]


def _levers(picked: ChosenModel, rates: Rates, context: int) -> Case:
    """The levers, folded away; those that are moved move the answer too."""
    precision = choices.precision_of(picked.shape)
    part = shell.fold(
        "What moves it: fewer bytes, more devices, a batch, speculation", key="roof_levers", controls=choices.CONTROLS
    )
    with part:
        base, amounts, on = choices.levers(precision)
        if part.open:
            _bars(bars(picked.shape, rates, context, base, amounts, on))
    moved = move(base, amounts, on)
    words = describe(moved, tuple(lever for lever in FIELDS if lever in on))
    return Case(rates, context, moved, words, computed_points(picked.shape, rates, context, moved))


def _bars(found: Sequence[Bar]) -> None:
    """Each lever alone, and those that are switched on together."""
    sides: tuple[Literal["time", "rate"], ...] = ("time", "rate")
    for side, what in zip(st.columns(2), sides, strict=True):
        with side:
            figure = figures.lever_bars(found, what, charts.palette())
            charts.show(figure, key=f"levers_{what}", table=bar_rows(found))
    shell.source("computed", FORMULA)


def _open(stage: shell.Stage, picked: ChosenModel, case: Case) -> None:
    floor = floor_of(picked.shape, case.rates, case.context, case.moved)
    with stage.answer:
        said = answer.sentence(picked.name, floor, case.rates, case.moved, case.words)
        origin = f"{FORMULA}; {case.context:,} tokens in each cache"
        shell.answer(said, "computed", origin, terms=("lower bound", "bandwidth-bound", "roofline"))
    with stage.picture:
        named = ("decode, batch 1", "decode, batch 64", "prefill, 1,024 tokens")
        picture.show(answer.roofline(case.points, case.rates, case.moved, named=named), key="roofline")


def _sums(parameters: int, floor: Floor) -> None:
    with st.container(horizontal=True):
        number_card(*_count(parameters), f"{number_text(floor.streamed, 'B')} read in a pass")
        number_card("to hold", number_text(floor.held, "B"), f"{number_text(floor.cache, 'B')} of it caches")
        number_card("lower bound, per token", number_text(floor.token_s, "s"), f"{floor.bound}-bound")
        number_card("tokens per second", number_text(floor.rate), f"{number_text(1 / floor.token_s)} for each request")


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
