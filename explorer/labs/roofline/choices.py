"""What the reader picks on this page beside a model: a machine, and the levers. Values live in the URL."""

from __future__ import annotations

import streamlit as st

from engine.costs import ModelShape
from engine.costs.bytes import PRECISIONS
from engine.measure.hardware import HARDWARE
from explorer.labs import controls, live
from explorer.labs.roofline.lower_bounds import ATTENTIONS, SHORT, Levers, Rates, measured, published
from explorer.say import words_beside

say = words_beside(__file__)

HERE = say("choices.here")
CONTEXTS = (128, 512, 2048, 8192, 32_768, 131_072)
FAST = ("int8", "fp8", "q8_0", "int4, groups of 64", "q4_0", "bf16", "fp32")
CONTROLS = (
    *(f"{lever}_on" for lever in "wcdbsa"),
    *"wcdbakpq",
)  # the levers' names in the URL
LEVER_WORDS = {
    "weights": say("choices.weights"),
    "cache": say("choices.cache"),
    "devices": "Devices",
    "batch": "Batch",
    "speculation": "Speculation",
    "attention": "Attention",
}


def precision_of(shape: ModelShape) -> str:
    """The precision a model comes in: what it is loaded in here where it is the loaded one, bf16 otherwise."""
    engine = live.loaded_engine()
    if engine is None or engine.info.shape is not shape:
        return "bf16"
    return SHORT.get(engine.info.dtype, "fp32")


def rates() -> Rates | None:
    """The machine picked; None where this one was not measured yet."""
    picked = controls.choice(say("choices.hardware"), [*HARDWARE, HERE], url="on", default="H100 SXM")
    if picked != HERE:
        return published(HARDWARE[picked])
    engine = live.loaded_engine()
    found = engine.machine if engine else None
    if found is None:
        st.text(say("choices.not_measured"))
        return None
    return measured(found)


def levers(precision: str) -> tuple[Levers, Levers, frozenset[str]]:
    """No lever moved, how far each is moved where it is, and which are."""
    base = Levers(weights=precision, cache=precision)
    on = set()
    columns = st.columns(3)
    amounts: dict[str, object] = {}
    for i, (lever, words) in enumerate(LEVER_WORDS.items()):
        with columns[i % 3], st.container(border=True):
            if controls.switch(words, url=f"{lever[0]}_on"):
                on.add(lever)
            amounts |= _amount(lever)
    return base, Levers(**amounts), frozenset(on)  # type: ignore[arg-type]


def _amount(lever: str) -> dict[str, object]:
    if lever in ("weights", "cache"):
        default = "int4, groups of 64" if lever == "weights" else "fp8"
        assert set(FAST) <= set(PRECISIONS)
        return {lever: controls.choice(say("choices.precision"), list(FAST), url=lever[0], default=default)}
    if lever in ("devices", "batch"):
        rungs = [2, 4, 8, 16, 32, 64] if lever == "devices" else [2**i for i in range(1, 12)]
        default_rung = 8 if lever == "devices" else 64
        return {lever: controls.ladder(say("choices.how_many"), rungs, url=lever[0], default=default_rung)}
    if lever == "attention":
        return {
            lever: controls.choice(say("choices.kind"), list(ATTENTIONS), url="a", default="latent", hint=LATENT_HINT)
        }
    return {
        "drafted": controls.whole(say("choices.drafted"), url="k", default=4, low=1, high=16),
        "acceptance": controls.slider(say("choices.accepted"), url="p", default=0.8, low=0, high=1, step=0.05),
        "draft_cost": controls.number(say("choices.draft_time"), url="q", default=0.05, low=0, high=1, step=0.01),
    }


LATENT_HINT = say("choices.latent")
