"""The list of lessons, with where one stands in each: only the browser knows that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from explorer.components.component_source import script_of, styles_of

STYLES = styles_of("lessons/lesson_list.css", root=".lessons-root")

_component = st.components.v2.component(
    "loupe_lessons", css=STYLES, js=script_of("lessons/lesson_list.js"), isolate_styles=True
)


def mount(lessons: Sequence[Mapping[str, object]], *, key: str) -> None:
    """Show lessons: id, title, summary, minutes, scenes, and whether each has a teacher's sheet."""
    _component(key=key, data={"lessons": [dict(lesson) for lesson in lessons]})
