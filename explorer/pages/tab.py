"""This browser tab on the server, for a lab: found again, or made, with a place for it where there is a line."""

from __future__ import annotations

import streamlit as st

from explorer.hosting.connections import CONNECTIONS
from explorer.hosting.limits import NotHere
from explorer.hosting.runtime import hold, runtime
from explorer.hosting.waiting_line import Waiting
from explorer.live.tab import Tab
from explorer.pages import tab_names, waiting
from explorer.pages.loading import running_model


def known() -> Tab | None:
    """The tab as it is; None where it has asked for nothing yet. Loads nothing and waits for nothing."""
    owner = tab_names.owner()
    tab = runtime().tab_of(owner)
    if tab is not None:
        hold(tab.sid, owner, tab_names.connection())
    return tab


def entered() -> Tab | None:
    """The tab, made where there is none; None while there is no model to make it on, or no place: the page says so."""
    tab = known() or _made()
    if tab is not None:
        hold(tab.sid, tab_names.owner(), tab_names.connection())
    return tab


def _made() -> Tab | None:
    there, owner = runtime(), tab_names.owner()
    loading = running_model(there.pool, there.hosting)
    if loading is None:
        return None
    try:
        admitted = there.admit(owner, {}, loading, CONNECTIONS.address(tab_names.connection()))
    except NotHere as error:
        there.pool.leave(loading)
        st.text(str(error))
        return None
    if isinstance(admitted, Waiting):
        there.pool.leave(loading)
        waiting.line()
        return None
    return admitted
