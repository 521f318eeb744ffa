"""What is on screen before there is a model: how far its loading is, or why it cannot be had and what to do.

Everything that comes from outside (names, paths, messages) is shown as plain text, never as markup.
"""

from __future__ import annotations

import logging
from concurrent.futures import wait

import streamlit as st

from explorer.engines.pool import EnginePool, Loading
from explorer.hosting.limits import Hosting
from explorer.say import words_beside

say = words_beside(__file__)

log = logging.getLogger(__name__)

REFRESH_S = 0.2
WIDTH = 560  # pixels: a line of text, not a screen of it


def running_model(pool: EnginePool, hosting: Hosting) -> Loading | None:
    """The default model, loaded while the page shows progress; None where that failed and the page says why.

    Counts as one user of it: whoever gets it leaves it in the end.
    """
    loading = pool.request()
    taken = False
    try:
        if not loading.future.done():
            _show_progress(loading, hosting)
        error = loading.future.exception()
        if error is not None:
            if hosting.is_hosted:
                log.error("the class has no model: %s", error)
                _show_closed()
            else:
                _show_failure(loading.model, str(error))
            return None
        taken = True
        return loading
    finally:
        if not taken:  # also where the visitor left while it was loading
            pool.leave(loading)


def _show_progress(loading: Loading, hosting: Hosting) -> None:
    place = st.empty()
    with place.container(key="loading", horizontal_alignment="center"), st.container(width=WIDTH):
        st.subheader("Loupe", anchor=False)
        st.caption(say("loading.preparing"))
        bar, words = st.progress(0.0), st.empty()
        while not loading.future.done():
            bar.progress(loading.fraction)
            words.text("" if hosting.is_hosted else loading.text)  # it may name a file, a repository or a package
            wait([loading.future], timeout=REFRESH_S)
    place.empty()


def _show_failure(model: str, message: str) -> None:
    with st.container(key="load_failed", horizontal_alignment="center"), st.container(width=WIDTH):
        st.subheader(say("loading.failed"), anchor=False)
        st.text(say("loading.asked", model=model))
        st.text(message)
        st.button(say("loading.again"), key="retry_load", icon=":material/refresh:")
        st.caption(say("loading.other_model"))


def _show_closed() -> None:
    """The same for a visitor of a class, who can do nothing about it and need not know where models lie."""
    with st.container(key="load_failed", horizontal_alignment="center"), st.container(width=WIDTH):
        st.subheader(say("loading.class_waits"), anchor=False)
        st.text(say("loading.class_reason"))
        st.button(say("loading.again"), key="retry_load", icon=":material/refresh:")
