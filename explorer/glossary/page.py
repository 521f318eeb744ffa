"""The glossary as a page, with a search."""

from __future__ import annotations

import streamlit as st

from explorer.glossary.glossary import Term, found, terms
from explorer.labs import controls
from explorer.labs.shell import escaped


def page() -> None:
    """All terms, or those that a search finds."""
    st.set_page_config(page_title="Glossary · Loupe")
    st.title("Glossary", anchor=False)
    st.text(
        f"{len(terms())} terms of the field in plain English: what each is, how its number is made, where to try it."
    )
    words = controls.text("Search", url="search", hint="a word, such as cache").strip()
    hits = found(words)
    if not hits:
        st.text(f"No term has “{words}” in it. Try a shorter word, or clear the search.")
    for term in hits:
        _show(term)


def _show(term: Term) -> None:
    with st.container(border=True, gap="small"):
        st.subheader(escaped(term.name), anchor=False)
        st.text(term.says)
        if term.how:
            st.text(f"How the number is made: {_begun_small(term.how)}")
        st.text(f"Try it: {_begun_small(term.where)}")
        if term.also:
            st.caption(escaped(f"Also: {', '.join(term.also)}"))


def _begun_small(sentence: str) -> str:
    """A sentence after a colon; what begins with an abbreviation keeps it."""
    first = sentence.split(" ", 1)[0]
    return sentence if first.isupper() and len(first) > 1 else sentence[0].lower() + sentence[1:]
