"""The Step page: one component that carries everything, fed with one frame per command.

The commands run in the change callback, before the page's body; the body only builds the frame. It is a
fragment, so a click never reruns the rest of the app.
"""

from __future__ import annotations

import logging

import streamlit as st

from explorer.components import step_page
from explorer.hosting.runtime import Tab, runtime
from explorer.live.wire import Wire, parse
from explorer.operations.checked import BadCommand
from explorer.pages import tab_names
from explorer.pages.tab import entered

log = logging.getLogger(__name__)


def page() -> None:
    """Load the model if need be, then show the component."""
    if _tab() is not None:
        with st.container(gap=None):  # the code takes no room
            step_page.deliver_code()
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
    tab, wire = _known_tab(), _read(step_page.said())
    if tab is not None and wire is not None:  # without a tab the page's body opens one
        tab_names.set_sid(runtime().receive(tab, tab_names.owner(), wire).sid)


def _known_tab() -> Tab | None:
    """This tab on the server, without waiting: where its engine has ended, on the next one if that runs already."""
    there, owner, sid = runtime(), tab_names.owner(), tab_names.sid()
    tab = there.tab(sid, owner)
    if tab is not None:
        return tab
    loading = there.pool.request()
    has_engine = loading.future.done() and loading.future.exception() is None
    tab = there.revive(sid, owner, loading) if has_engine else None
    if tab is None:
        there.pool.leave(loading)
    return tab


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
