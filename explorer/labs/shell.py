"""What every lab begins with, and how it says where a number comes from."""

from __future__ import annotations

import re
from typing import Literal

import streamlit as st

from explorer.labs import live

Source = Literal["measured", "computed", "published"]

_SIGNS: dict[Source, str] = {"measured": "measured", "computed": "computed", "published": "published"}


def lab(title: str, question: str) -> None:
    """The page's header: its title, and in one sentence the question it answers."""
    st.set_page_config(page_title=f"{title} · Loupe")
    live.take_back()
    st.title(title, anchor=False)
    st.text(question)


def section(title: str, why: str = "") -> None:
    """A part of a lab: what it shows, and why one would look."""
    st.subheader(title, anchor=False)
    if why:
        st.text(why)


def source(kind: Source, words: str) -> None:
    """Where the numbers above come from: measured (here, when), computed (by which formula), published (by whom)."""
    st.caption(f"{_SIGNS[kind]}: {escaped(words)}")


def escaped(words: str) -> str:
    """Text for a place that reads Markdown, so that it shows as it is written, and an address in it is no link."""
    plain = _ADDRESS.sub(lambda found: f"{found[0]}{_JOINER}", words)
    return "".join(f"\\{letter}" if letter in _MARKUP else letter for letter in plain)


_ADDRESS = re.compile(r"https?:|www(?=\.)|@", re.IGNORECASE)  # addresses are made links after backslashes are gone
_JOINER = "\u2060"  # no width, no line break: what follows is no address any more
_MARKUP = frozenset("\\`*_{}[]()<>#+-!|$~:&")
