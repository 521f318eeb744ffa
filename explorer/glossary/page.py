"""The glossary as a page, with a search."""

from __future__ import annotations

import streamlit as st

from explorer.glossary.glossary import Term, found, terms
from explorer.labs import controls
from explorer.labs.shell import escaped
from explorer.say import words_beside

say = words_beside(__file__)


def page() -> None:
    """All terms, or those that a search finds."""
    st.set_page_config(page_title=say("page.tab"))
    st.title(say("page.title"), anchor=False)
    st.text(say("page.says", count=len(terms())))
    words = controls.text(say("page.search"), url="search", hint=say("page.search_hint")).strip()
    hits = found(words)
    if not hits:
        st.text(say("page.none", words=words))
    for term in hits:
        _show(term)


def _show(term: Term) -> None:
    with st.container(border=True, gap="small"):
        st.subheader(escaped(term.name), anchor=False)
        st.text(term.says)
        if term.how:
            st.text(say("page.how", how=_begun_small(term.how)))
        st.text(say("page.try", where=_begun_small(term.where)))
        if term.also:
            st.caption(escaped(say("page.also", also=", ".join(term.also))))


def _begun_small(sentence: str) -> str:
    """A sentence after a colon; what begins with an abbreviation keeps it."""
    first = sentence.split(" ", 1)[0]
    return sentence if first.isupper() and len(first) > 1 else sentence[0].lower() + sentence[1:]
