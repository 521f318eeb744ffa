"""What a browser tab's Streamlit session remembers: two names and nothing else.

Streamlit keeps this for minutes after a tab is gone, and throws it away at a reload. So it holds no tensor
and no session, only the names under which runtime.py finds them.
"""

from __future__ import annotations

import secrets
from typing import cast

import streamlit as st

from explorer.hosting.connections import HEADER

_OWNER = "loupe_owner"
_SID = "loupe_sid"


def owner() -> str:
    """The name this tab's connection owns things under; made at first use."""
    if _OWNER not in st.session_state:
        st.session_state[_OWNER] = secrets.token_urlsafe(16)
    return cast(str, st.session_state[_OWNER])


def connection() -> str | None:
    """The browser connection behind this run of the page; None once it is gone."""
    return st.context.headers.get(HEADER)


def sid() -> str | None:
    """The name of the session this tab works on."""
    return cast("str | None", st.session_state.get(_SID))


def payer() -> str:
    """The name that the engine counts this tab's heavy work under: its session's, where it has one."""
    return sid() or owner()


def set_sid(value: str) -> None:
    """Work on another session from now on."""
    st.session_state[_SID] = value
