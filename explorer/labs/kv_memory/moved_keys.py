"""A button that puts another token first and shows which cached keys and values moved."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from engine.errors import LoupeError
from engine.studies.key_records import KeyChange
from explorer.engines import bridge
from explorer.labs import charts, controls, progress, shell
from explorer.labs.kv_memory import cache_pictures
from explorer.say import words_beside

if TYPE_CHECKING:
    from engine.session import DecodeSession

say = words_beside(__file__)

CONTROLS = ("first", "side")  # their names in the URL


@dataclass(frozen=True, slots=True)
class Change:
    """What the controls ask for: the text of the first token to be, and the side to show, keys or values."""

    first: str
    side: str


def ask() -> Change:
    """The claim and the controls."""
    st.text(say("moved_keys.what"))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        first = controls.text(say("moved_keys.first_token"), url="first", default="A", most=100)
        side = controls.choice(
            say("moved_keys.show"), cache_pictures.SIDES, url="side", default="keys", style="segments"
        )
    return Change(first, side)


def show(session: DecodeSession, asked: Change) -> None:
    """The button and the picture."""
    token_id = _token(session, asked.first)
    if token_id is None:
        return
    first = bridge.token_labels(session.engine, [session.recipe.token_ids[0], token_id])

    def begin(report: progress.TaskProgress) -> Future[KeyChange]:
        return bridge.change_first_token(
            session, token_id, lambda done, total: report(done, total, say("moved_keys.fed"))
        )

    inputs = (session.id, session.epoch, len(session.records), token_id)
    change = progress.task(
        "moved keys", say("moved_keys.change", before=first[0], after=first[1]), begin, inputs=inputs
    )
    if change is not None:
        _picture(session, change, cache_pictures.SIDES.index(asked.side))


def _token(session: DecodeSession, words: str) -> int | None:
    try:
        return session.engine.tokenizer.find(words, session.engine.info.vocab_size)
    except LoupeError as error:
        st.text(str(error))
        return None


def _picture(session: DecodeSession, change: KeyChange, side: int) -> None:
    labels = bridge.token_labels(session.engine, change.token_ids)
    safe = [charts.plain(label) for label in labels]
    st.text(cache_pictures.moved_words(change, side))
    rows = [
        {
            "layer": layer,
            "position": n,
            "token": labels[n],
            "moved": float(change.moved[side, layer, n]),
            say("moved_keys.same_bits"): bool(change.same_bits[side, layer, n]),
            "rounding": float(change.rounding[side, layer, n]),
        }
        for layer in range(change.moved.shape[1])
        for n in range(len(labels))
    ]
    charts.show(
        cache_pictures.moved(change, safe, side, charts.palette()),
        key=f"moved {cache_pictures.SIDES[side]}",
        table=rows,
    )
    shell.source(
        "measured",
        say("moved_keys.measured"),
    )
