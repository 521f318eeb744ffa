"""The host's page of a class: how many are there, how long they wait, what it costs. Live, behind the host's key.

No prompt, no token and no name of a session is here: a student's work is the student's.
"""

from __future__ import annotations

import hmac
import time

import streamlit as st

from explorer.class_now import ClassNow, class_now
from explorer.pages.loading import WIDTH
from explorer.runtime import Runtime, runtime
from explorer.theme import format_bytes, format_count

REFRESH_S = 2.0
WRONG_KEY_S = 1.0  # so that keys cannot be tried by the thousand
_HOST = "loupe_is_host"


def page() -> None:
    """Ask for the key, then show the class."""
    there = runtime()
    if not there.hosting.has_class_page:
        return
    if st.session_state.get(_HOST) is True or _ask_for_key(there.hosting.host_key):
        _class()


def is_key(given: str, key: str) -> bool:
    """Compared in a time that says nothing about where they differ."""
    return bool(key) and hmac.compare_digest(given.encode("utf-8", "replace"), key.encode())


def _ask_for_key(key: str) -> bool:
    with st.container(key="host_door", horizontal_alignment="center"), st.container(width=WIDTH):
        st.space("large")
        st.subheader("For the host of this class", anchor=False)
        with st.form("host_key", border=False):
            given = st.text_input("Key", type="password", autocomplete="current-password")
            asked = st.form_submit_button("Show the class", type="primary")
        if not asked:
            return False
        if is_key(given, key):
            st.session_state[_HOST] = True
            st.rerun()
        time.sleep(WRONG_KEY_S)
        st.text("This is not the key. It is what LOUPE_HOST_KEY was set to when the server was started.")
    return False


@st.fragment(run_every=REFRESH_S)
def _class() -> None:
    there = runtime()
    now = class_now(there)
    with st.container(key="class_page", horizontal_alignment="center"), st.container(width=1000):
        st.space("small")
        st.subheader("The class", anchor=False)
        st.caption(headline(now, there.hosting.max_sessions))
        _numbers(there, now)
        _minutes(now)


def headline(now: ClassNow, places: int) -> str:
    """Who is there, in one line."""
    here = f"{now.in_use} of {places} places taken" if places else f"{now.in_use} here"
    return f"{here} · {now.in_line} in line · {now.asleep} asleep, rebuilt on touch · {now.engine.words}"


def _numbers(there: Runtime, now: ClassNow) -> None:
    most = there.hosting.kv_bytes
    with st.container(horizontal=True):
        st.metric("Tokens drawn", format_count(now.tokens), border=True)
        st.metric("Tokens per second", f"{now.tokens_per_s:.1f}", border=True, help="Mean of the last minute")
        st.metric(
            "Keys and values",
            format_bytes(now.kv_bytes),
            border=True,
            help=f"Budget {format_bytes(most)}" if most else None,
        )
        st.metric("Evictions", format_count(now.evictions), border=True, help="Caches freed since the server started")


def _minutes(now: ClassNow) -> None:
    """The last five minutes, in steps of ten seconds."""
    with st.container(horizontal=True):
        st.metric(
            "Sessions sharing a forward", f"{now.batch_size:.1f}", border=True, chart_type="area",
            chart_data=now.batch_sizes, help="Mean of the last minute; the curve is the last five minutes",
        )  # fmt: skip
        st.metric(
            "Wait for a turn, 95th percentile", f"{1000 * now.wait_p95_s:.0f} ms", border=True, chart_type="area",
            chart_data=[1000 * wait for wait in now.waits_s],
            help="Of the last minute; the curve is the mean over the last five minutes",
        )  # fmt: skip
