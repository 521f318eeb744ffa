"""The list of lessons, with where one stands in each: only the browser knows that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from explorer.components.component_script import ASSETS, script_of
from explorer.components.module_bundle import bundle_css, read_sources

ENTRY = "lessons/lesson_list.js"
COLOURS, OWN = "step_page/style/colours.css", "lessons/lesson_list.css"


def styles() -> str:
    """The Step page's colours, under a name that is not the Step page's, then the list's own sheet."""
    sheets = read_sources(ASSETS, ".css")
    return bundle_css({COLOURS: sheets[COLOURS].replace(".loupe", ".lessons-root"), OWN: sheets[OWN]})


_component = st.components.v2.component("loupe_lessons", css=styles(), js=script_of(ENTRY), isolate_styles=True)


def mount(lessons: Sequence[Mapping[str, object]], words: Mapping[str, str], *, key: str) -> None:
    """Show lessons: id, title, summary, minutes, scenes, and whether each has a teacher's sheet."""
    _component(key=key, data={"lessons": [dict(lesson) for lesson in lessons], "words": dict(words)})
