"""What somebody sees while the class is full: the place in line. It updates, and lets them in, by itself.

Whoever was in the class and only reloads is in no line: the tab's own storage still names the session, whose
place is kept for as long as its cache is. Python cannot read that storage, so a component without a body does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st

from explorer.hosting.connections import CONNECTIONS
from explorer.hosting.runtime import runtime
from explorer.hosting.waiting_line import Waiting
from explorer.pages import tab_names
from explorer.pages.loading import WIDTH
from explorer.say import words_beside

say = words_beside(__file__)

ASK_EVERY_S = 2.0
KEY = "waiting"
SCRIPT = Path(__file__).resolve().parents[2] / "assets" / "waiting" / "waiting.js"

_memory = st.components.v2.component("loupe_waiting", js=SCRIPT.read_text(encoding="utf-8"))


def line() -> None:
    """Wait, and go in when it is one's turn."""
    _line()


@st.fragment(run_every=ASK_EVERY_S)
def _line() -> None:
    there, owner = runtime(), tab_names.owner()
    CONNECTIONS.keep(tab_names.connection(), ("line", owner), lambda: there.waiting_line.leave(owner))
    sid = remembered()
    if sid is not None and there.take_back(sid, owner):
        st.rerun()
    waiting = there.ask(owner)
    if waiting is None:
        st.rerun()
    else:
        _show(waiting)


def remembered(key: str = KEY) -> str | None:
    """The session this tab's own storage names, once the browser has said it. Once a run of the page and key."""
    said: Any = _memory(key=key, on_sid_change=lambda: None)
    return said.sid if isinstance(said.sid, str) else None


def _show(waiting: Waiting) -> None:
    with st.container(key="waiting_line", horizontal_alignment="center"), st.container(width=WIDTH):
        st.space("large")
        st.subheader(say("waiting.full"), anchor=False)
        st.text(words(waiting))
        st.caption(say("waiting.keep_open"))


def words(waiting: Waiting) -> str:
    """The place in line, as one says it."""
    if waiting.place == 1:
        return say("waiting.next")
    return say("waiting.place", place=waiting.place)
