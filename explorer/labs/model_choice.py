"""Which model a calculator computes for: one by name, the one that is loaded, a pasted config, or one from the Hub.

Nothing is loaded for it: a shape is a handful of numbers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import streamlit as st

from engine.costs.shape import ModelShape
from engine.errors import LoupeError
from engine.shapes import NAMED, parse, read
from explorer.engines import bridge
from explorer.hosting.runtime import runtime
from explorer.labs import controls, live
from explorer.say import words_beside

say = words_beside(__file__)

BY_NAME, LOADED, PASTED, HUB = "by name", "the loaded model", "a config", "from the Hub"
_AGREED = "loupe_config_agreed"
CONFIG = "config"  # the pasted config's name in the URL
MOST_CHARACTERS = 200_000
LINK_CHARACTERS = 2_000
NAME = re.compile(r"[\w.-]{1,60}(/[\w.-]{1,60})?")
ONLY_CACHE = say("model_choice.only_cache")
EXAMPLE = '{"model_type": "llama", "num_hidden_layers": 32, "num_attention_heads": 32, …}'


@dataclass(frozen=True, slots=True)
class ChosenModel:
    """A model to compute for. `source` says where its sizes come from."""

    name: str
    shape: ModelShape
    source: str


def choose_model(*, default: str = "Llama 3.1 8B", needs_weights: bool = True) -> ChosenModel | None:
    """The controls, and what they choose, its doubts said; None where that is no model yet: the page says why.

    needs_weights  whether a model of which only the cache is known will not do
    """
    sources = [BY_NAME, LOADED, PASTED] + ([] if runtime().hosting.is_hosted else [HUB])
    source = controls.choice(say("model_choice.model"), sources, url="from", default=BY_NAME)
    try:
        chosen = _chosen(source, default)
    except LoupeError as error:
        st.text(str(error))
        return None
    if chosen is None:
        return None
    _say_doubts(chosen.shape)
    if needs_weights and not chosen.shape.knows_weights:
        st.text(say("model_choice.cannot", name=chosen.name, only_cache=ONLY_CACHE))
        return None
    return chosen


def _say_doubts(shape: ModelShape) -> None:
    """What was not understood, above every number that rests on it."""
    if not shape.doubts:
        return
    with st.container(border=True, key="doubts"):
        st.text(say("model_choice.doubts"))
        for said in shape.doubts:
            st.text(say("model_choice.doubt", said=said))


def _chosen(source: str, default: str) -> ChosenModel | None:
    if source == LOADED:
        return _loaded()
    if source == PASTED:
        return _pasted()
    if source == HUB:
        return _from_hub()
    name = controls.choice(say("model_choice.name"), list(NAMED), url="model", default=default)
    return ChosenModel(name, NAMED[name].shape, NAMED[name].source)


def _loaded() -> ChosenModel | None:
    engine = live.loaded_engine()
    if engine is None:
        st.text(say("model_choice.none_loaded"))
        return None
    return ChosenModel(engine.info.name, engine.info.shape, say("model_choice.loaded_source"))


def _from_hub() -> ChosenModel | None:
    repo = controls.text(say("model_choice.hub_id"), url="hub", hint=say("model_choice.hub_hint")).strip()
    if not repo:
        st.text(say("model_choice.hub_example"))
        return None
    if (
        st.session_state.get(_AGREED) != repo
    ):  # a link can name one: nothing leaves this machine before somebody says so
        st.text(say("model_choice.not_here", repo=repo))
        if not st.button(say("model_choice.fetch"), key="fetch_config", type="primary"):
            return None
        st.session_state[_AGREED] = repo
    with st.spinner(say("model_choice.fetching")):
        return ChosenModel(repo, _hub_shape(repo), say("model_choice.hub_source", repo=repo))


@lru_cache(maxsize=100)
def _hub_shape(repo: str) -> ModelShape:
    return bridge.shape_on_hub(repo)


def _pasted() -> ChosenModel | None:
    words = st.text_area(
        "config.json",
        st.query_params.get(CONFIG, ""),
        key="pasted_config",
        max_chars=MOST_CHARACTERS,
        height=160,
        placeholder=EXAMPLE,
        persist_state="session",
    )
    config = parse(words or "")
    reading = read(config)
    link = json.dumps(reading.essential, separators=(",", ":"))
    if len(link) <= LINK_CHARACTERS:
        st.query_params[CONFIG] = link
    else:
        st.query_params.pop(CONFIG, None)
        st.text(say("model_choice.too_long", link=f"{len(link):,}"))
    return ChosenModel(name_of(config), reading.shape, say("model_choice.pasted_source"))


def name_of(config: Mapping[str, Any]) -> str:
    """What to call a pasted model: the name it gives itself where that looks like one, and like no address."""
    for given, before in ((config.get("_name_or_path"), ""), (config.get("model_type"), "Pasted ")):
        if isinstance(given, str) and NAME.fullmatch(given) and not given.lower().startswith("www."):
            return before + given
    return say("model_choice.pasted")
