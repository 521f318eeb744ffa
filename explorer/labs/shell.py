"""What every lab begins with: its question, its answer in one sentence, a picture, and the controls beside it.

What is beside that is folded away, and drawn when it is opened. Every number is followed by where it comes from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from string import Formatter
from typing import Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.elements.lib.mutable_expander_container import ExpanderContainer

from explorer.glossary.glossary import named
from explorer.labs import live
from explorer.say import words_beside

say = words_beside(__file__)

Source = Literal["measured", "computed", "published"]

_SIGNS: dict[Source, str] = {"measured": "measured", "computed": "computed", "published": "published"}


@dataclass(frozen=True, slots=True)
class Answer:
    """One sentence, or two. `words` has its parts in braces: "{model} keeps {size} per token".

    numbers  with their units; they are set off
    names    of models and machines
    """

    words: str
    numbers: Mapping[str, str]
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def plain(self) -> str:
        """As it is read."""
        return self.words.format(**self.numbers, **self.names)


@dataclass(frozen=True, slots=True)
class Stage:
    """The places of a lab's first view, there from the start: what is drawn later moves nothing."""

    answer: DeltaGenerator
    picture: DeltaGenerator
    below: DeltaGenerator
    controls: DeltaGenerator


def lab(title: str, question: str) -> None:
    """The page's header: its title, and in one sentence the question it answers."""
    st.set_page_config(page_title=say("shell.tab", title=title))
    live.take_back()
    with st.container(key="lab_head"):
        st.title(title, anchor=False)
        st.text(question)


def stage() -> Stage:
    """The answer across the page, the picture under it, the controls in a narrow column beside the picture.

    `below` the picture is for what measures it here.
    """
    said = st.container(key="lab_answer")
    left, right = st.columns([2.7, 1], gap="small")
    return Stage(
        said,
        left.container(key="lab_picture"),
        left.container(key="lab_below"),
        right.container(border=True, key="lab_controls", gap="small"),
    )


def answer(said: Answer, kind: Source, origin: str, *, key: str = "answer", terms: Sequence[str] = ()) -> None:
    """The lab's answer, large and with its numbers set off, and where they come from; a "?" explains its `terms`."""
    with st.container(key=key):
        st.markdown("".join(_answer_parts(said)))
        source(kind, origin, terms)


def _answer_parts(said: Answer) -> Iterator[str]:
    for literal, name, _, _ in Formatter().parse(said.words):
        yield escaped(literal)
        if name is None:
            continue
        if name in said.names:
            yield escaped(said.names[name])
        else:
            yield f":primary[**{escaped(said.numbers[name].strip())}**]"


def section(title: str, why: str = "") -> None:
    """A part of a lab: what it shows, and why one would look."""
    st.subheader(title, anchor=False)
    if why:
        st.text(why)


def details(title: str, *, key: str) -> DeltaGenerator | None:
    """A part that is folded away; None while it is, and nothing of it is computed or drawn."""
    part = fold(title, key=key, controls=())
    return part if part.open else None


def fold(title: str, *, key: str, controls: tuple[str, ...]) -> ExpanderContainer:
    """The same with controls in it. Draw those while it is folded too, so that a link keeps them; the rest if `open`.

    controls  their names in the URL: a link with one of them opens it
    """
    return st.expander(title, _is_linked(key, controls), key=key, on_change="rerun")


def more(key: str, controls: tuple[str, ...]) -> DeltaGenerator:
    """The controls that are seldom needed, folded away; a link with one of them opens it."""
    return st.expander(say("shell.more"), _is_linked(key, controls), key=key)


def _is_linked(key: str, controls: tuple[str, ...]) -> bool:
    """Whether the link that opened the page has one of these controls; what is refused is gone from it afterwards."""
    linked = f"{key}_linked"
    if linked not in st.session_state:
        st.session_state[linked] = any(name in st.query_params for name in controls)
    return bool(st.session_state[linked])


def source(kind: Source, words: str, terms: Sequence[str] = ()) -> None:
    """Where the numbers above come from: measured (here, when), computed (by which formula), published (by whom)."""
    explained = "\n\n".join(f"**{escaped(t.name)}**: {escaped(t.says)} {escaped(t.how)}".strip() for t in named(terms))
    st.caption(f"{_SIGNS[kind]}: {escaped(words)}", help=explained or None)


def escaped(words: str) -> str:
    """Text for a place that reads Markdown, so that it shows as it is written, and an address in it is no link."""
    plain = _ADDRESS.sub(lambda found: f"{found[0]}{_JOINER}", words)
    return "".join(f"\\{letter}" if letter in _MARKUP else letter for letter in plain)


_ADDRESS = re.compile(r"https?:|www(?=\.)|@", re.IGNORECASE)  # addresses are made links after backslashes are gone
_JOINER = "\u2060"  # no width, no line break: what follows is no address any more
_MARKUP = frozenset("\\`*_{}[]()<>#+-!|$~:&")
