"""The race while it is run: two bars on one scale, growing step by step, and the text that both draw.

A component of its own: it is drawn anew several times a second, in place, which a Plotly chart cannot be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from explorer.components.component_source import script_of, styles_of
from explorer.labs.without_cache.figures import CACHED, UNCACHED
from explorer.pages.theme import Palette
from explorer.say import words_beside

if TYPE_CHECKING:
    from engine.studies.uncached import Race, RaceStep
    from engine.text.tokenizer import Tokenizer

say = words_beside(__file__)

_component = st.components.v2.component(
    "loupe_race_lanes",
    html='<div class="lanes"></div>\n',
    css=styles_of("labs/race_lanes.css", "step_page/style/take_away.css", root=".lanes"),
    js=script_of("labs/race_lanes.js"),
)


def show(race: Race, tokenizer: Tokenizer, colours: Palette) -> None:
    """Draw what the race has shown so far."""
    _component(key="race_lanes", data=payload(race, tokenizer, colours))


def agreement_so_far(steps: Sequence[RaceStep]) -> str:
    """The same ids or not, and the newest and the largest difference of any logit."""
    if not steps:
        return ""
    apart = sum(not step.agrees for step in steps)
    newest, worst = f"{steps[-1].logit_difference:.1e}", f"{max(step.logit_difference for step in steps):.1e}"
    if apart:
        return say("lanes.apart", apart=apart, steps=len(steps), newest=newest, worst=worst)
    return say("lanes.same", steps=len(steps), newest=newest, worst=worst)


def payload(race: Race, tokenizer: Tokenizer, colours: Palette) -> dict[str, object]:
    """What the component draws, as JSON. Text stays text: the component never makes markup of it."""
    steps = race.steps
    ways = [
        (CACHED, colours.accent, [step.cached for step in steps]),
        (UNCACHED, colours.forced, [step.uncached for step in steps]),
    ]
    return {
        "label": say("lanes.label"),
        "step": say.unfilled("lanes.step"),
        "prompt": tokenizer.join(race.prompt_ids).text,
        "agreement": agreement_so_far(steps),
        "drawn": tokenizer.join([step.token_id for step in steps]).text,
        "ways": [
            {
                "name": name[0].upper() + name[1:],
                "colour": colour,
                "of": race.new_tokens,
                "ms": [round(turn.forward_ms, 2) for turn in turns],
                "positions": sum(turn.positions for turn in turns),
            }
            for name, colour, turns in ways
        ],
    }
