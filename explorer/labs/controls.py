"""Controls whose value lives in the URL, so that a link shows the same page.

Streamlit keeps value and URL together (`bind="query-params"`): the URL holds what differs from the default, and
forgets it when the page is left. What it does not do is say when a link asked for something that cannot be: it takes
the default in silence. Here that is said in words.

`url` is the control's name there: short, and used once in a lab.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

import streamlit as st

from explorer.say import words_beside

say = words_beside(__file__)

T = TypeVar("T")
Style = Literal["list", "segments"]

_TOLD = "loupe_told"
BIND: Literal["query-params"] = "query-params"
KEEP: Literal["page"] = "page"  # a control that is not drawn, because its part is folded, keeps its value
TEXT_LIMIT = 2_000  # characters; longer URLs are cut by servers on the way


def whole(label: str, *, url: str, default: int, low: int, high: int, step: int = 1, hint: str | None = None) -> int:
    """A whole number from `low` to `high`, typed."""
    asked = _asked(url)
    if _is_endless(st.query_params.get(url, "")):
        _ask_again_without(url, asked)
    value = st.number_input(label, low, high, default, step, key=url, help=hint, bind=BIND, persist_state=KEEP)
    _said(
        asked, url, _is_whole(asked, low, high), say("controls.whole", low=f"{low:,}", high=f"{high:,}"), f"{value:,}"
    )
    return int(value)


def number(
    label: str, *, url: str, default: float, low: float, high: float, step: float | None = None, hint: str | None = None
) -> float:
    """A number from `low` to `high`, typed."""
    asked = _asked(url)
    value = st.number_input(
        label, float(low), float(high), float(default), step, key=url, help=hint, bind=BIND, persist_state=KEEP
    )
    _said(
        asked, url, _is_number(asked, low, high), say("controls.number", low=f"{low:g}", high=f"{high:g}"), f"{value:g}"
    )
    return float(value)


def slider(
    label: str, *, url: str, default: float, low: float, high: float, step: float, hint: str | None = None
) -> float:
    """A number from `low` to `high`, dragged."""
    asked = _asked(url)
    value = st.slider(
        label, float(low), float(high), float(default), float(step), key=url, help=hint, bind=BIND, persist_state=KEEP
    )
    _said(
        asked, url, _is_number(asked, low, high), say("controls.number", low=f"{low:g}", high=f"{high:g}"), f"{value:g}"
    )
    return float(value)


def ladder(label: str, rungs: Sequence[int], *, url: str, default: int, hint: str | None = None) -> int:
    """One of a rising row of whole numbers, dragged: for spans that ask for a logarithmic scale."""
    asked = _asked(url)
    value = st.select_slider(
        label, list(rungs), default, _with_commas, key=url, help=hint, bind=BIND, persist_state=KEEP
    )
    known = {_with_commas(rung) for rung in rungs}
    rule = say("controls.rungs", first=f"{rungs[0]:,}", second=f"{rungs[1]:,}", last=f"{rungs[-1]:,}")
    _said(asked, url, asked in known, rule, _with_commas(value))
    return int(value)


def choice(
    label: str,
    options: Sequence[T],
    *,
    url: str,
    default: T,
    words: Callable[[T], str] = str,
    style: Style = "list",
    hint: str | None = None,
) -> T:
    """One of `options`. What `words` says of each is on screen and in the URL, so each must be said differently."""
    by_words = {words(option): option for option in options}
    assert len(by_words) == len(options), f"two options of {url} read the same"
    asked, names = _asked(url), list(by_words)
    if style == "segments":
        picked = st.segmented_control(
            label, names, default=words(default), required=True, key=url, help=hint, bind=BIND, persist_state=KEEP
        )
    else:
        picked = st.selectbox(
            label, names, names.index(words(default)), key=url, help=hint, bind=BIND, persist_state=KEEP
        )
    _said(asked, url, asked in by_words, say("controls.one_of", names=", ".join(names)), picked or "")
    return by_words.get(picked or "", default)


def switch(label: str, *, url: str, default: bool = False, hint: str | None = None) -> bool:
    """On or off."""
    asked = _asked(url)
    value = st.toggle(label, default, key=url, help=hint, bind=BIND, persist_state=KEEP)
    _said(asked, url, asked.lower() in ("true", "false"), say("controls.switch"), str(value).lower())
    return value


def text(label: str, *, url: str, default: str = "", most: int = TEXT_LIMIT, hint: str | None = None) -> str:
    """A line of text."""
    asked = _asked(url)
    value = st.text_input(label, default, most, key=url, help=hint, bind=BIND, persist_state=KEEP)
    _said(asked, url, len(asked) <= most, say("controls.text", most=f"{most:,}"), _short(value or "nothing"))
    return default if value is None else value


def _with_commas(rung: int) -> str:
    return f"{rung:,}"


def _asked(url: str) -> str:
    """What the URL says, read before the control is made: what cannot be is gone afterwards."""
    refused: str = st.session_state.pop(_refused(url), "")
    if refused:
        st.session_state.setdefault(_TOLD, {})[url] = refused
    return st.query_params.get(url, "") or refused


def _ask_again_without(url: str, asked: str) -> None:
    """Streamlit would end the page in an error on this one, so the page is begun again without it. `_said` says so."""
    for name, words in {**st.session_state.pop(_TOLD, {}), url: asked}.items():  # this run's words were not seen
        st.session_state[_refused(name)] = words
    del st.query_params[url]
    st.rerun()


def _refused(url: str) -> str:
    return f"loupe_refused_{url}"


def _is_endless(words: str) -> bool:
    try:
        return math.isinf(float(words))
    except ValueError:
        return False


def _said(asked: str, url: str, is_possible: bool, rule: str, used: str) -> None:
    if asked and not is_possible:
        st.text(say("controls.refused", url=url, asked=_short(asked), rule=rule, used=used))


def _short(words: str) -> str:
    return words if len(words) <= 40 else f"{words[:39]}…"


def _is_whole(words: str, low: int, high: int) -> bool:
    try:
        return low <= int(words) <= high
    except ValueError:
        return False


def _is_number(words: str, low: float, high: float) -> bool:
    try:
        return math.isfinite(float(words)) and low <= float(words) <= high
    except ValueError:
        return False
