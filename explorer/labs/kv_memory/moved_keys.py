"""A button that puts another token first and shows which cached keys and values moved."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING

import streamlit as st

from engine.errors import LoupeError
from engine.studies.key_records import KeyChange
from explorer.engines import bridge
from explorer.labs import charts, controls, progress, shell
from explorer.labs.kv_memory import cache_pictures

if TYPE_CHECKING:
    from engine.session import DecodeSession

CONTROLS = ("first", "side")  # their names in the URL


def show(session: DecodeSession) -> None:
    """The claim, the control, the button, the picture."""
    st.text("In layer 0 they do. Put another token first, prefill that copy, and see what became of all the others.")
    words = controls.text("Put this token first", url="first", default="A", most=100)
    token_id = _token(session, words)
    if token_id is None:
        return
    first = bridge.token_labels(session.engine, [session.recipe.token_ids[0], token_id])

    def begin(report: progress.TaskProgress) -> Future[KeyChange]:
        return bridge.change_first_token(session, token_id, lambda done, total: report(done, total, "tokens fed"))

    inputs = (session.id, session.epoch, len(session.records), token_id)
    change = progress.task("moved keys", f"Change “{first[0]}” to “{first[1]}” in a copy", begin, inputs=inputs)
    if change is not None:
        _picture(session, change)


def _token(session: DecodeSession, words: str) -> int | None:
    try:
        return session.engine.tokenizer.find(words, session.engine.info.vocab_size)
    except LoupeError as error:
        st.text(str(error))
        return None


def _picture(session: DecodeSession, change: KeyChange) -> None:
    side = cache_pictures.SIDES.index(
        controls.choice("Show", cache_pictures.SIDES, url="side", default="keys", style="segments")
    )
    labels = bridge.token_labels(session.engine, change.token_ids)
    safe = [charts.plain(label) for label in labels]
    st.text(cache_pictures.moved_words(change, side))
    rows = [
        {
            "layer": layer,
            "position": n,
            "token": labels[n],
            "moved": float(change.moved[side, layer, n]),
            "same bits": bool(change.same_bits[side, layer, n]),
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
        "here, now: two copies of the run prefilled alike, all but the first token; "
        "|after − before| ÷ |before| over all heads. The run itself was not touched.",
    )
