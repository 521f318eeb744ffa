"""Which labs there are, in the order of the menu. One line here makes a page: its module is imported when it is opened.

A module named here has a function `page() -> None`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

import streamlit as st
from streamlit.navigation.page import Page

from explorer.say import words_beside

say = words_beside(__file__)

SECTION = "Labs"


@dataclass(frozen=True, slots=True)
class Lab:
    """One entry of the menu.

    url     the page's address, without the slash
    module  where its `page` is
    help    one sentence for whoever points at the entry
    """

    title: str
    url: str
    module: str
    help: str


LABS: tuple[Lab, ...] = (
    Lab(
        say("catalogue.roofline_title"),
        "roofline",
        "explorer.labs.roofline.page",
        say("catalogue.roofline"),
    ),
    Lab(
        say("catalogue.without_cache_title"),
        "without-cache",
        "explorer.labs.without_cache.page",
        say("catalogue.without_cache"),
    ),
    Lab(
        say("catalogue.prefill_decode_title"),
        "prefill-decode",
        "explorer.labs.prefill_decode.page",
        say("catalogue.prefill_decode"),
    ),
    Lab(
        say("catalogue.kv_memory_title"),
        "kv-memory",
        "explorer.labs.kv_memory.page",
        say("catalogue.kv_memory"),
    ),
    Lab(
        say("catalogue.flash_attention_title"),
        "flash-attention",
        "explorer.labs.flash_attention.page",
        say("catalogue.flash_attention"),
    ),
)

CLAIMS = Lab(say("catalogue.fact_check_title"), "fact-check", "explorer.claims.page", say("catalogue.fact_check"))

BEFORE = {"floor": "roofline", "library": "kv-memory", "tiles": "flash-attention", "claims": "fact-check"}  # old: new


def as_page(lab: Lab) -> Page:
    """The entry as Streamlit's navigation takes it."""
    return st.Page(_opener(lab.module), title=lab.title, url_path=lab.url, help=lab.help)


def moved(before: str) -> Page:
    """A page that leads from an address of before to where it is now, with the controls in its query."""
    lab = next(lab for lab in (*LABS, CLAIMS) if lab.url == BEFORE[before])

    def lead_on() -> None:
        query = {name: st.query_params.get_all(name) for name in st.query_params}
        st.switch_page(as_page(lab), query_params=query)

    return st.Page(lead_on, title=lab.title, url_path=before, visibility="hidden")


def link(url: str, words: str, **controls: str) -> None:
    """A link to another lab; `controls` are its controls by their names in the URL."""
    lab = next(lab for lab in (*LABS, CLAIMS) if lab.url == url)
    st.page_link(as_page(lab), label=words, query_params=controls or None)


def _opener(module: str) -> Callable[[], None]:
    def opened() -> None:
        import_module(module).page()

    return opened
