"""What the reader picks on this page: a model, a machine, and the levers. Values live in the URL."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from engine.costs import ModelShape
from engine.costs.bytes import PRECISIONS
from engine.errors import LoupeError
from engine.hardware import HARDWARE
from engine.shapes import NAMED, from_json
from explorer.labs import controls, live
from explorer.labs.floor.floors import ATTENTIONS, SHORT, Levers, Rates, measured, published
from explorer.runtime import runtime

LOADED, PASTED, HUB, HERE = "The loaded model", "A pasted config", "A Hub id", "This machine"
CONTEXTS = (128, 512, 2048, 8192, 32_768, 131_072)
FAST = ("int8", "fp8", "q8_0", "int4, groups of 64", "q4_0", "bf16", "fp32")
LEVER_WORDS = {
    "weights": "Weights as", "cache": "Cache as", "devices": "Devices", "batch": "Batch", "speculation": "Speculation",
    "attention": "Attention",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Model:
    """A model to price: its shape, where that is from, and the precision it comes in."""

    name: str
    shape: ModelShape
    said: str
    precision: str = "bf16"


def model() -> Model | None:
    """The model picked; None where it cannot be read, and the page says why."""
    picked = controls.choice("Model", [*NAMED, LOADED, PASTED, HUB], url="model", default="Llama 3.1 70B")
    if picked in NAMED:
        return Model(picked, NAMED[picked].shape, NAMED[picked].source)
    try:
        return {LOADED: _loaded, PASTED: _pasted, HUB: _on_hub}[picked]()
    except LoupeError as error:
        st.text(str(error))
        return None


def _loaded() -> Model | None:
    engine = live.loaded_engine()
    if engine is None:
        live.nothing_yet("The loaded model's floor")
        return None
    info = engine.info
    said = f"{info.architecture} as loaded, {info.dtype}"
    return Model(info.name, info.shape, said, SHORT.get(info.dtype, "fp32"))


def _pasted() -> Model:
    text = st.text_area(
        "config.json", height=180, max_chars=60_000, key="config", placeholder='{"model_type": "llama", …}'
    )
    return Model("Pasted config", from_json(text), "pasted here")


def _on_hub() -> Model | None:
    if runtime().hosting.is_hosted:
        st.text("A shared Loupe fetches nothing from the Hub. Paste the model's config.json instead.")
        return None
    repo = controls.text("Hub id", url="hub", most=120, hint="Its config.json is fetched, nothing else")
    if not repo:
        st.text("Type a model's name on the Hub, HuggingFaceTB/SmolLM2-135M for instance.")
        return None
    return Model(repo, _fetched(repo), f"config.json of {repo} on the Hub")


@st.cache_data(ttl=3600, max_entries=50, show_spinner="Asking the Hub for its config.json")
def _fetched(repo: str) -> ModelShape:
    from engine.shapes.hub import shape_on_hub

    return shape_on_hub(repo)


def rates() -> Rates | None:
    """The machine picked; None where this one was not measured yet."""
    picked = controls.choice("Hardware", [*HARDWARE, HERE], url="on", default="H100 SXM")
    if picked != HERE:
        return published(HARDWARE[picked])
    engine = live.loaded_engine()
    found = engine.machine if engine else None
    if found is None:
        st.text("This machine is not measured yet. Do it at the top of this page.")
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
        return {lever: controls.choice("precision", list(FAST), url=lever[0], default=default)}
    if lever in ("devices", "batch"):
        rungs = [2, 4, 8, 16, 32, 64] if lever == "devices" else [2**i for i in range(1, 12)]
        default_rung = 8 if lever == "devices" else 64
        return {lever: controls.ladder("how many", rungs, url=lever[0], default=default_rung)}
    if lever == "attention":
        return {lever: controls.choice("kind", list(ATTENTIONS), url="a", default="latent", hint=LATENT_HINT)}
    return {
        "drafted": controls.whole("tokens drafted", url="k", default=4, low=1, high=16),
        "acceptance": controls.slider(
            "probability that one is accepted", url="p", default=0.8, low=0, high=1, step=0.05
        ),
        "draft_cost": controls.number(
            "a draft step's time, of a step's", url="q", default=0.05, low=0, high=1, step=0.01
        ),
    }


LATENT_HINT = (
    "latent: one vector of four heads' width and half a head for positions, as DeepSeek-V2 chose it. "
    "Attention's weights change with it."
)
