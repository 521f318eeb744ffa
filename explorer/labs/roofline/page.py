"""Lab: the least time of a step. Any model on any hardware first, then this machine under the model loaded here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from engine.shapes.book import SCALING_BOOK_30B as BOOK
from explorer.hosting.runtime import runtime
from explorer.labs import charts, controls, live, progress, shell
from explorer.labs.model_choice import ONLY_CACHE
from explorer.labs.roofline import example, figures, two_precisions
from explorer.labs.roofline.anywhere import anywhere
from explorer.labs.roofline.here import here
from explorer.labs.roofline.tables import pair_rows, pair_says
from explorer.say import words_beside

if TYPE_CHECKING:
    from engine.llm_engine import LLMEngine

say = words_beside(__file__)

STEPS = (16, 32, 64, 128)


def page() -> None:
    """The whole lab, from what could run anywhere to what runs here."""
    shell.lab(say("page.title"), say("page.question"))
    anywhere(shell.stage())
    _examples()
    here()
    part = shell.fold(say("page.precisions"), key="roof_precisions", controls=("t", "steps"))
    with part:
        asked = _ask_precisions()
        if asked is not None and part.open:
            _two_precisions(*asked)


def _ask_precisions() -> tuple[LLMEngine, str, int] | None:
    """The engine to compare, and the controls: a prompt and a number of steps. None: the page says why it cannot be."""
    st.text(say("page.precisions_why"))
    if runtime().hosting.is_hosted:
        st.text(say("page.shared"))
        return None
    engine = live.loaded_engine()
    if engine is None:
        st.text(say("page.no_model"))
        return None
    if not engine.info.shape.knows_weights:
        st.text(say("page.cannot", name=engine.info.name, only_cache=ONLY_CACHE))
        return None
    if engine.info.dtype == "bfloat16":
        st.text(say("page.already", name=engine.info.name))
        return None
    with st.container(horizontal=True, vertical_alignment="bottom"):
        prompt = controls.text(say("page.prompt"), url="t", default="The cat sat", most=300)
        steps = controls.choice(say("page.steps"), STEPS, url="steps", default=32)
    return engine, prompt, steps


def _two_precisions(engine: LLMEngine, prompt: str, steps: int) -> None:
    pool = runtime().pool
    begin = two_precisions.begin(engine, pool.start, pool.config, prompt, steps)
    pair = progress.task("precisions", say("page.run"), begin, inputs=(engine.info.id, prompt, steps))
    if pair is None:
        return
    charts.show(figures.precision_steps(pair, charts.palette()), key="precisions", table=pair_rows(pair))
    for words in pair_says(pair):
        st.text(words)
    shell.source(
        "measured",
        say("page.measured"),
    )


def _examples() -> None:
    part = shell.details(say("page.one_card", large=example.LARGE, card=example.CARD), key="roof_70b")
    if part:
        with part:
            charts.table(example.one_card_rows(), name="one card")
            shell.source("computed", say("page.one_card_formula"))
    part = shell.details(say("page.example", name=BOOK.name), key="roof_book")
    if part:
        with part:
            charts.table(example.book_results(), name="textbook results")
            st.text(example.book_says())
            charts.table(example.book_inputs(), name="textbook inputs")
            shell.source("published", say("page.inputs", source=BOOK.source))
            shell.source("computed", say("page.example_formula"))
