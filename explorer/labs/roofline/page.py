"""Lab: the least time of a step. Any model on any hardware first, then this machine under the model loaded here."""

from __future__ import annotations

import streamlit as st

from engine.shapes.book import SCALING_BOOK_30B as BOOK
from explorer.hosting.runtime import runtime
from explorer.labs import charts, controls, live, progress, shell
from explorer.labs.model_choice import ONLY_CACHE
from explorer.labs.roofline import example, figures, two_precisions
from explorer.labs.roofline.anywhere import anywhere
from explorer.labs.roofline.here import here
from explorer.labs.roofline.tables import pair_rows, pair_says

STEPS = (16, 32, 64, 128)


def page() -> None:
    """The whole lab, from what could run anywhere to what runs here."""
    shell.lab("Roofline", "How fast could a step be, what holds it there, and what moves it?")
    anywhere(shell.stage())
    _examples()
    here()
    part = shell.details(
        "Fewer bytes, measured: do half the bytes halve a step?", key="roof_precisions", controls=("t", "steps")
    )
    if part:
        with part:
            _two_precisions()


def _two_precisions() -> None:
    st.text("The loaded model and the same in bfloat16, stepped in turn on this machine.")
    if runtime().hosting.is_hosted:
        st.text("This Loupe is shared: a second model is not loaded here. Run your own to try it.")
        return
    engine = live.loaded_engine()
    if engine is None:
        st.text("Prefill a prompt first, here above or on the Step page: that loads the model.")
        return
    if not engine.info.shape.knows_weights:
        st.text(f"{engine.info.name}: {ONLY_CACHE} So its steps have no floor to stand above.")
        return
    if engine.info.dtype == "bfloat16":
        st.text(f"{engine.info.name} is loaded in bfloat16 already; this compares float32 with it.")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        prompt = controls.text("Prompt", url="t", default="The cat sat", most=300)
        steps = controls.choice("Steps", STEPS, url="steps", default=32)
    pool = runtime().pool
    begin = two_precisions.begin(engine, pool.start, pool.config, prompt, steps)
    pair = progress.task("precisions", "Step both", begin, inputs=(engine.info.id, prompt, steps))
    if pair is None:
        return
    charts.show(figures.precision_steps(pair, charts.palette()), key="precisions", table=pair_rows(pair))
    for words in pair_says(pair):
        st.text(words)
    shell.source(
        "measured",
        "forward passes of both, in turn, greedy; each lower bound is its own bytes over its own read bandwidth",
    )


def _examples() -> None:
    part = shell.details(f"{example.LARGE} on one {example.CARD}: why one card does not hold it", key="roof_70b")
    if part:
        with part:
            st.table(example.one_card_rows(), hide_index=True)
            shell.source("computed", "bytes of the weights a step reads over the card's bandwidth, nothing cached")
    part = shell.details(f"{BOOK.name}: about 2.5 ms at batch 4 and 21 ms at batch 256", key="roof_book")
    if part:
        with part:
            st.table(example.book_results(), hide_index=True)
            st.text(example.book_says())
            st.table(example.book_inputs(), hide_index=True)
            shell.source("published", f"inputs: {BOOK.source}")
            shell.source("computed", "caches over bandwidth, then the longer of reading the weights and multiplying")
