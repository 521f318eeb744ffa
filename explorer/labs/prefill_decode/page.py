"""Lab: one forward pass over the prompt against one step per new token, computed anywhere and measured here."""

from __future__ import annotations

import streamlit as st

from explorer.hosting.runtime import runtime
from explorer.labs import live, picture, shell
from explorer.labs.prefill_decode import answer, anywhere, here, in_pieces, measured
from explorer.say import words_beside

say = words_beside(__file__)


def page() -> None:
    """The answer by formula, or as it was measured; then what was measured, and one prompt in pieces."""
    shell.lab(
        say("page.title"),
        say("page.question"),
    )
    stage, hosting = shell.stage(), runtime().hosting
    with stage.controls:
        case = anywhere.ask()
    _open(stage, case)
    with stage.below:
        engine = live.engine()
        if engine is not None:
            here.remember(engine)
            measured.show(engine, hosting)
    if case is not None:
        anywhere.show(case)
    if engine is None:
        return
    part = shell.details(say("page.least"), key="pd_machine")
    if part:
        with part:
            here.this_machine(engine, hosting)
    part = shell.fold(say("page.pieces"), key="pd_pieces", controls=("p",))
    with part:
        tokens = in_pieces.ask(engine, hosting)
        if part.open:
            in_pieces.show(engine, tokens)


def _open(stage: shell.Stage, case: anywhere.Case | None) -> None:
    """What was measured here, else what this tab's run took, else what formulas say."""
    times = measured.found()
    session = live.live_session()
    run = answer.run_times(session.records) if session is not None else None
    if times is not None:
        said, drawn = answer.measured(times), answer.measured_bars(times)
        origin: tuple[shell.Source, str] = ("measured", say("page.measured"))
    elif run is not None:
        said, drawn = answer.of_run(run), answer.run_bars(run)
        origin = ("measured", say("page.run"))
    elif case is not None:
        rates = case.machine.rates
        said, drawn = answer.computed(case.model.name, case.pair, rates), answer.computed_bars(case.pair, rates)
        origin = (
            "computed",
            say("page.formula"),
        )
    else:
        return
    with stage.answer:
        shell.answer(said, *origin, terms=("prefill", "compute-bound", "bandwidth-bound"))
        too_large = anywhere.too_large(case) if case is not None and times is None and run is None else ""
        if too_large:
            st.text(too_large)
    with stage.picture:
        picture.show(drawn, key="two_requests", size="mid")
