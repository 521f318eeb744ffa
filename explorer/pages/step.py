"""The Step page: one component that carries everything, fed with one frame per command.

The commands run in the change callback, before the page's body; the body only builds the frame. It is a
fragment, so a click never reruns the rest of the app.
"""

from __future__ import annotations

import logging

import streamlit as st

from explorer import state
from explorer.checked import BadCommand
from explorer.components import step_page
from explorer.pages.tab import entered
from explorer.runtime import Tab, runtime
from explorer.wire import Wire, parse

log = logging.getLogger(__name__)


def page() -> None:
    """Load the model if need be, then show the component."""
    if _tab() is not None:
        _component()


@st.fragment
def _component() -> None:
    tab = _tab()
    if tab is None:
        return
    result = step_page.mount(tab.frames.build(), _on_wire_change)
    wire = _read(result.wire)
    if wire is not None and not tab.knows(wire.mount):  # said to a tab that is gone: this one was made since
        tab.disown(wire)
        st.rerun()


def _on_wire_change() -> None:
    tab, wire = runtime().tab(state.sid(), state.owner()), _read(step_page.said())
    if tab is not None and wire is not None:  # without a tab the page's body opens one
        state.set_sid(runtime().receive(tab, state.owner(), wire).sid)


def _read(said: object) -> Wire | None:
    if said is None:
        return None
    try:
        return parse(said)
    except BadCommand as error:
        log.warning("the page sent something that cannot be read: %s", error)
        return None


def _tab() -> Tab | None:
    return entered({name: st.query_params.get_all(name) for name in st.query_params})
