"""What a race is about: whose prompt, how many tokens, how they are drawn; and how much of it a server allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from engine.config import SamplingParams
from engine.errors import LoupeError, PromptTooLong
from explorer.engines import bridge
from explorer.hosting.limits import Hosting
from explorer.labs import controls, live
from explorer.say import words_beside

if TYPE_CHECKING:
    from engine.llm_engine import LLMEngine

say = words_beside(__file__)

HERE, ON_STEP = "typed here", "the Step page's"
GREEDY, SAME_U = "greedy", "the same u"
MOST_NEW = 1_000  # an evening's patience on a laptop
MOST_NEW_IN_A_CLASS = 64


@dataclass(frozen=True, slots=True)
class Setup:
    """Everything a race depends on, so that another one is another value."""

    model: str
    prompt_ids: tuple[int, ...]
    new_tokens: int
    sampling: SamplingParams
    seed: int


@dataclass(frozen=True, slots=True)
class Bounds:
    """Most new tokens, and most positions in one forward; 0 is no limit but the model's own."""

    new_tokens: int
    positions: int

    def require(self, prompt_len: int, new_tokens: int) -> None:
        """Refuse a race whose last forward would hold up everybody else."""
        last = prompt_len + new_tokens - 1
        if self.positions and last > self.positions:
            raise PromptTooLong(
                say(
                    "setup.too_long",
                    last=f"{last:,}",
                    positions=f"{self.positions:,}",
                    fewer=f"{last - self.positions:,}",
                )
            )


def bounds(hosting: Hosting, prefill_chunk: int) -> Bounds:
    """In a class no forward is longer than a piece of anybody's prefill."""
    if hosting.is_hosted:
        return Bounds(MOST_NEW_IN_A_CLASS, prefill_chunk)
    return Bounds(MOST_NEW, 0)


def ask(engine: LLMEngine, hosting: Hosting) -> Setup | None:
    """The controls. None where there is nothing to race over yet, and the page says what to do."""
    limits = bounds(hosting, engine.config.prefill_chunk)
    source = controls.choice(say("setup.prompt"), [HERE, ON_STEP], url="from", default=HERE)
    new_tokens = controls.whole(
        say("setup.new_tokens"), url="n", default=48, low=1, high=limits.new_tokens, hint=say("setup.new_tokens_hint")
    )
    draw = controls.choice(say("setup.sampling"), [GREEDY, SAME_U], url="draw", default=GREEDY)
    sampling, seed = SamplingParams(temperature=0), 0
    if source == ON_STEP:
        session = live.session_or_offer(say("setup.needs"))
        if session is None:
            return None
        prompt_ids = session.recipe.prompt_ids
        if draw == SAME_U:
            sampling, seed = session.recipe.sampling, session.recipe.seed
            st.caption(say("setup.settings"))
    else:
        typed = _typed(engine, hosting, draw)
        if typed is None:
            return None
        prompt_ids, sampling, seed = typed
    try:
        hosting.require_tokens(len(prompt_ids))
        limits.require(len(prompt_ids), new_tokens)
    except LoupeError as error:
        st.text(str(error))
        return None
    return Setup(engine.info.id, prompt_ids, new_tokens, sampling, seed)


def _typed(engine: LLMEngine, hosting: Hosting, draw: str) -> tuple[tuple[int, ...], SamplingParams, int] | None:
    """The ids of a prompt typed here, or None with the reason on the page."""
    text = controls.text(say("setup.text"), url="prompt", default="The cat sat")
    sampling, seed = SamplingParams(temperature=0), 0
    if draw == SAME_U:
        sampling = SamplingParams()
        seed = controls.whole(
            say("setup.seed"), url="seed", default=0, low=0, high=2**31, hint=say("setup.same_u_hint")
        )
    try:
        hosting.require_length(len(text))
        prompt = bridge.encode(engine, text, "raw")
        if not prompt.ids:
            raise LoupeError(say("setup.empty"))
    except LoupeError as error:
        st.text(str(error))
        return None
    return prompt.ids, sampling, seed
