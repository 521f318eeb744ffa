"""What a browser tab's Streamlit session remembers: one name and nothing else.

Streamlit keeps this for minutes after a tab is gone, and throws it away at a reload. So it holds no tensor
and no session, only the secret name under which runtime.py finds them, and which the page says over the live line.
"""

from __future__ import annotations

import secrets
from typing import cast

import streamlit as st

from explorer.hosting.connections import HEADER

_OWNER = "loupe_owner"


def owner() -> str:
    """The name this tab's connection owns things under; made at first use."""
    if _OWNER not in st.session_state:
        st.session_state[_OWNER] = secrets.token_urlsafe(16)
    return cast(str, st.session_state[_OWNER])


def connection() -> str | None:
    """The browser connection behind this run of the page; None once it is gone."""
    return st.context.headers.get(HEADER)
