"""The lessons page: what each lesson teaches, how long it takes, and where one stands in this browser."""

from __future__ import annotations

import streamlit as st

from explorer.components import lesson_list
from explorer.hosting.runtime import runtime
from explorer.labs.shell import escaped
from explorer.lessons.reading import TOUR
from explorer.lessons.shelf import SHELF, NoLesson, Shelved, say


def page() -> None:
    """The tour, the project's lessons, and a teacher's own under a heading of theirs."""
    st.set_page_config(page_title=f"{say('page.title')} · Loupe")
    with st.container(key="lab_head"):
        st.title(say("page.title"), anchor=False)
        st.text(say("page.question"))
    found = SHELF.all()
    own, others = [one for one in found if one.is_own], [one for one in found if not one.is_own]
    if not found:
        st.text(say("page.none"))
        return
    with st.container(key="lessons_list"):
        lesson_list.mount([*_tour(), *(_row(one) for one in own if one.lesson)], key="lessons")
    _faults(own)
    if others:
        st.subheader(say("page.own"), anchor=False)
        lesson_list.mount([_row(one) for one in others if one.lesson], key="own_lessons")
        _faults(others)


def _tour() -> list[dict[str, object]]:
    try:
        tour = SHELF.tour()
    except NoLesson:
        return []
    facts = {"id": TOUR, "title": tour.title, "summary": say("tour.on_list"), "minutes": tour.minutes}
    return [{**facts, "scenes": len(tour.scenes), "sheet": False}]


def _row(shelved: Shelved) -> dict[str, object]:
    lesson = shelved.lesson
    assert lesson is not None, "a row is made of a lesson that could be read"
    facts = {"id": lesson.id, "title": lesson.title, "summary": lesson.summary, "minutes": lesson.minutes}
    return {**facts, "scenes": len(lesson.scenes), "sheet": True}


def _faults(shelved: list[Shelved]) -> None:
    """Files that could not be read: with their lines for whoever runs this machine, without for a class."""
    for one in shelved:
        if one.lesson is not None:
            continue
        if runtime().hosting.is_hosted:
            st.text(say("page.faulty_hosted", name=one.id))
            continue
        with st.container(border=True):
            st.markdown(f"**{escaped(say('page.faulty', name=one.id, file=str(one.file)))}**")
            for fault in one.faults:
                st.text(say("page.unread", line=fault.line, words=fault.words))
