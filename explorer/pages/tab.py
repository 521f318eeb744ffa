"""This browser tab on the server: found again, or made, with a place for it where there is a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from explorer import state
from explorer.door import Waiting
from explorer.pages import waiting
from explorer.pages.loading import running_model
from explorer.runtime import Tab, hold, runtime


def known() -> Tab | None:
    """The tab as it is; None where it has asked for nothing yet. Loads nothing and waits for nothing."""
    owner = state.owner()
    tab = runtime().tab(state.sid(), owner)
    if tab is not None:
        hold(tab.sid, owner)
    return tab


def entered(link: Mapping[str, Sequence[str]]) -> Tab | None:
    """The tab, made where there is none; None while there is no model to make it on, or no place: the page says so.

    link  the query that a new tab is to follow; a lab's own controls are none
    """
    there, owner = runtime(), state.owner()
    tab = known()
    if tab is not None:
        return tab
    loading = running_model(there.pool, there.hosting)
    if loading is None:
        return None
    admitted = there.admit(owner, link, loading)
    if isinstance(admitted, Waiting):
        there.pool.leave(loading)
        waiting.line()
        return None
    state.set_sid(admitted.sid)
    hold(admitted.sid, owner)
    return admitted
