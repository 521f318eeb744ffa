"""The live session of this tab for a lab: the one on the Step page, and the engine under it.

A lab only looks. What moves the session (the prefill offered where there is none) goes through the same commands as
the Step page's, so that going back there shows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from explorer.hosting.runtime import runtime
from explorer.pages import tab as this_tab
from explorer.pages import tab_names, waiting
from explorer.pages.loading import running_model
from explorer.say import words_beside
from explorer.workspace.examples import EXAMPLES

if TYPE_CHECKING:
    from engine.llm_engine import LLMEngine
    from engine.session import DecodeSession

say = words_beside(__file__)

_FIRST = EXAMPLES[0]
_ASKED = "loupe_lab_prefill"
_MEMORY = "lab_memory"


def live_session() -> DecodeSession | None:
    """The run on this tab's Step page, with at least its prefill done; None where there is none.

    One whose engine has ended counts as none, until `nothing_yet` or the Step page has rebuilt it.
    """
    tab = this_tab.known()
    active = tab.workspace.active if tab is not None else None
    if active is None or active.is_lost:
        return None
    session = active.session
    return session if session.records else None


def engine() -> LLMEngine | None:
    """The engine of this tab, else the default model's, loaded with progress. None: the page says why it cannot be."""
    found = loaded_engine()
    if found is not None:
        return found
    there = runtime()
    loading = running_model(there.pool, there.hosting)
    if loading is None:
        return None
    there.pool.leave(loading)  # the default model stays, whoever uses it
    return loading.future.result()


def loaded_engine() -> LLMEngine | None:
    """The engine of this tab where it has one that runs. Loads nothing."""
    tab = this_tab.known()
    found = tab.workspace.engine if tab is not None else None
    return found if found is not None and found.is_alive else None


def session_or_offer(what: str) -> DecodeSession | None:
    """The live session; where there is none, the page offers to begin one."""
    session = live_session()
    if session is None:
        nothing_yet(what)
    return session


def nothing_yet(what: str) -> None:
    """The empty state: what is missing for `what`, and a button that brings it about."""
    with st.container(border=True, key="nothing_yet"):
        st.text(say("live.needs", what=what))
        with st.container(horizontal=True):
            asked = st.button(say("live.prefill", prompt=_FIRST.prompt), key="prefill_here")
        if asked or st.session_state.get(_ASKED):
            st.session_state[_ASKED] = True  # a line before a full class takes more than one run of the page
            _prefill_first()


def _prefill_first() -> None:
    tab = this_tab.entered()
    if tab is None:
        return
    st.session_state.pop(_ASKED, None)
    is_lost = tab.workspace.active is not None and tab.workspace.active.records  # its engine had ended: it goes on
    args = {"solo": tab.workspace.solo} if is_lost else {"prompt": _FIRST.prompt, "mode": _FIRST.mode}
    outcome = runtime().perform(tab, "hello" if is_lost else "prefill", args)
    if outcome.error is not None:
        st.text(outcome.error[1])
    else:
        st.rerun()


def take_back() -> None:
    """After a reload: go on with the session that the tab's own storage names. Once at the top of a page."""
    if this_tab.known() is not None:
        return
    sid, owner = waiting.remembered(_MEMORY), tab_names.owner()
    if sid is not None:
        runtime().take_back(sid, owner)


def payer() -> str:
    """The name that the engine counts this tab's heavy work under: its session's, where it has one."""
    owner = tab_names.owner()
    return runtime().tabs.of_owner(owner) or owner


def lengths(engine: LLMEngine) -> tuple[int, ...]:
    """Tokens in the cache of every session of this engine that holds any, largest first. No names."""
    return tuple(taken.live // engine.info.kv_bytes_per_token for taken in engine.sessions.each())
