"""The host's page of a class: how many are there, how long they wait, what it costs. Live, behind the host's key.

A student's work is the student's: only the text of those who switched sharing on is here, without a name, and it is
gone with the next look once they switch it off. It is shown as text, never as markup.
"""

from __future__ import annotations

import hmac
import math
import time
from collections.abc import Sequence

import streamlit as st

from explorer.hosting.class_now import ClassNow, class_now
from explorer.hosting.connections import CONNECTIONS
from explorer.hosting.runtime import Runtime, runtime
from explorer.labs import picture
from explorer.pages import tab_names
from explorer.pages.loading import WIDTH
from explorer.pages.theme import format_bytes, format_count
from explorer.say import words_beside

say = words_beside(__file__)

REFRESH_S = 2.0
LONG_TEXT = 900  # characters: beyond, a text scrolls in a window of its own
LONG_HEIGHT = 220
BIN_S = 10
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
        st.subheader(say("class_page.host"), anchor=False)
        with st.form("host_key", border=False):
            given = st.text_input(say("class_page.key"), type="password", autocomplete="current-password")
            asked = st.form_submit_button(say("class_page.show"))
        if not asked:
            return False
        attempts, address = runtime().attempts, CONNECTIONS.address(tab_names.connection())
        wait_s = attempts.wait_s(address)
        if wait_s > 0:
            st.text(say("class_page.too_many", wait_s=math.ceil(wait_s)))
            return False
        if is_key(given, key):
            st.session_state[_HOST] = True
            st.rerun()
        attempts.failed(address)
        time.sleep(WRONG_KEY_S)
        st.text(say("class_page.wrong_key"))
    return False


@st.fragment(run_every=REFRESH_S)
def _class() -> None:
    there = runtime()
    now = class_now(there)
    with st.container(key="class_page", horizontal_alignment="center"), st.container(width=1000):
        st.space("small")
        st.subheader(say("class_page.title"), anchor=False)
        st.caption(headline(now, there.hosting.max_sessions))
        _numbers(there, now)
        _minutes(now)
        _shared(now)


def headline(now: ClassNow, places: int) -> str:
    """Who is there, in one line."""
    rest = {"in_use": now.in_use, "in_line": now.in_line, "asleep": now.asleep, "engine": now.engine.words}
    return say("class_page.places", **rest, places=places) if places else say("class_page.here", **rest)


def _numbers(there: Runtime, now: ClassNow) -> None:
    most = there.hosting.kv_bytes
    with st.container(horizontal=True):
        st.metric(say("class_page.tokens"), format_count(now.tokens), border=True)
        st.metric(say("class_page.rate"), f"{now.tokens_per_s:.1f}", border=True, help=say("class_page.rate_hint"))
        st.metric(say("class_page.keys_values"), format_bytes(now.kv_bytes), border=True, help=bytes_help(now, most))
        st.metric(say("class_page.evictions"), format_count(now.evictions), border=True, help=evictions_help(now))


def bytes_help(now: ClassNow, most: int) -> str:
    """Of what the bytes are, and what bounds them."""
    runs = say("class_page.runs", runs=format_count(now.runs))
    budget = say("class_page.budget", most=format_bytes(most)) if most else ""
    shared = say("class_page.shared_prompts", prefix_bytes=format_bytes(now.prefix_bytes))
    return " ".join(sentence for sentence in (runs, budget, shared) if sentence)


def evictions_help(now: ClassNow) -> str:
    """What was freed, and why."""
    return say("class_page.freed_hint", releases=format_count(now.releases))


def _shared(now: ClassNow) -> None:
    st.subheader(say("class_page.shared"), anchor=False)
    if not now.shared:
        st.caption(say("class_page.nobody"))
    for one in now.shared:
        with st.container(border=True, key=f"shared_{one.number}"):
            st.caption(say("class_page.student", number=one.number, n=one.steps))
            is_long = len(one.prompt) + len(one.text) > LONG_TEXT
            with st.container(height=LONG_HEIGHT if is_long else "content", border=False):
                st.text(one.prompt)
                st.text(one.text or say("class_page.nothing_yet"))


def _minutes(now: ClassNow) -> None:
    """The last minute, and a curve over the last five in steps of ten seconds for each."""
    wait_ms = [1000 * wait for wait in now.waits_s]
    shown = (
        ("batch", f"{now.batch_size:.1f}", now.batch_sizes, say("class_page.batch"), ""),
        ("wait", say("class_page.wait_ms", ms=f"{1000 * now.wait_p95_s:.0f}"), wait_ms, say("class_page.wait"), "ms"),
    )
    for place, (key, value, curve, title, unit) in zip(st.columns(2), shown, strict=True):
        with place:
            st.metric(title, value, border=True, help=say("class_page.last_minute"))
            picture.show(_curve(title, curve, unit), key=f"class_{key}", size="mid")


def _curve(title: str, values: Sequence[float], unit: str) -> picture.Plot:
    """Means of ten seconds each, oldest first."""
    ago = [BIN_S * (i + 1 - len(values)) for i in range(len(values))]
    words = [f"{value:,.1f} {unit}".strip() for value in values]
    low = -BIN_S * len(values)
    return picture.Plot(
        say("class_page.curve"),
        picture.axis(say("class_page.seconds"), 0, low=low, is_cut=True),
        picture.axis(unit, max(values, default=0) or 1),
        lines=(picture.Line(title, ago, values, words),),
        alt=say("class_page.curve_alt", title=title, newest=words[-1]),
    )
