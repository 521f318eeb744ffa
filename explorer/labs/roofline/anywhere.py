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
from explorer.say import words_beside

say = words_beside(__file__)

FORMULA = say("anywhere.formula")


def anywhere(stage: shell.Stage) -> None:
    """The answer and its picture for what the controls pick; then what moves it, folded away."""
    with stage.controls:
        picked = choose_model(default="Llama 3.1 70B")
        rates = choices.rates()
        context = controls.ladder(say("anywhere.context"), choices.CONTEXTS, url="ctx", default=2048)
    if picked is None or rates is None:
        return
    case = _levers(picked, rates, context)
    _open(stage, picked, case)
    part = shell.details(say("anywhere.numbers"), key="roof_numbers")
    if part:
        with part:
            _sums(picked.shape.parameters.total, floor_of(picked.shape, rates, context, case.moved))
            charts.numbers(point_rows(case.points), "roofline")
            for said in picked.shape.assumed:
                st.text(say("anywhere.assumed", said=said))
            shell.source(
                "published",
                say(
                    "anywhere.published",
                    model=picked.name,
                    model_source=picked.source,
                    machine=rates.name,
                    machine_source=rates.said,
                ),
            )
    part = shell.details(say("anywhere.batch"), key="roof_batch")
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
    part = shell.fold(say("anywhere.levers"), key="roof_levers", controls=choices.CONTROLS)
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
        origin = say("anywhere.origin", formula=FORMULA, context=f"{case.context:,}")
        shell.answer(said, "computed", origin, terms=("lower bound", "bandwidth-bound", "roofline"))
    with stage.picture:
        named = (say("anywhere.decode_alone"), say("anywhere.decode_batch"), say("anywhere.prefill"))
        picture.show(answer.roofline(case.points, case.rates, case.moved, named=named), key="roofline")


def _sums(parameters: int, floor: Floor) -> None:
    with st.container(horizontal=True):
        number_card(*_count(parameters), say("anywhere.read", streamed=number_text(floor.streamed, "B")))
        number_card(
            say("anywhere.to_hold"),
            number_text(floor.held, "B"),
            say("anywhere.caches", cache=number_text(floor.cache, "B")),
        )
        number_card(say("anywhere.bound"), number_text(floor.token_s, "s"), f"{floor.bound}-bound")
        number_card(
            say("anywhere.rate"),
            number_text(floor.rate),
            say("anywhere.rate_each", token_s=number_text(1 / floor.token_s)),
        )


def _turns(curve: BatchCurve, context: int) -> str:
    if curve.critical is None or curve.context is None:
        return say("anywhere.no_peak")
    linear, turn = say("anywhere.linear", critical=f"{curve.critical:,.0f}"), f"{curve.context:,.0f}"
    if curve.context == float("inf"):
        return f"{linear} {say('anywhere.attention_too')}"
    if context > curve.context:
        return f"{linear} {say('anywhere.longer', context=turn)}"
    return f"{linear} {say('anywhere.shorter', context=turn)}"


def _count(parameters: int) -> tuple[str, str]:
    """A unit for so many parameters, and their number in it: ("billion parameters", "70.6")."""
    unit, size = ("billion", 1e9) if parameters >= 1e9 else ("million", 1e6)
    return say("anywhere.parameters", unit=unit), f"{parameters / size:.3g}"
