"""The live session's cache in three numbers, side by side with why they differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from explorer.labs import charts, shell
from explorer.labs.charts import number_text
from explorer.labs.kv_memory import memory, pictures
from explorer.say import words_beside

if TYPE_CHECKING:
    from engine.session import DecodeSession

say = words_beside(__file__)


def agreement(session: DecodeSession) -> None:
    """How many tokens are in it, and whether formula and tensors agree."""
    record = session.records[-1]
    st.text(
        say(
            "three_numbers.after", index=record.index, kv_len=f"{record.kv_len:,}", memory=memory.verdict(record.memory)
        )
    )


def show(session: DecodeSession) -> None:
    """The numbers of the newest step, why they differ, and what the process holds besides."""
    record, engine = session.records[-1], session.engine
    use, info = record.memory, engine.info
    bytes_each = info.kv_bytes_per_token / info.shape.kv_elements_per_token
    found = memory.numbers(use, record.kv_len, info.shape, bytes_each)
    with st.container(horizontal=True, key="library_numbers"):
        for number in found:
            st.metric(
                number.name,
                number_text(number.size, "B"),
                border=True,
                help=say("three_numbers.size", size=f"{number.size:,}", origin=number.origin),
            )
    window = memory.window_words(info.shape, record.kv_len, use.kv_live_bytes, bytes_each)
    if window:
        st.text(window)
    rows = [
        {"number": n.name, "bytes": f"{n.size:,}", "how": n.origin, say("three_numbers.includes"): n.includes}
        for n in found
    ]
    charts.table(rows, name="cache in bytes")
    held, counters = engine.sessions.total(), engine.counters()
    parts = memory.parts(use, all_live=held.live, all_reserved=held.reserved, shared=counters.prefix_bytes)
    charts.show(
        pictures.memory_parts(parts, charts.palette()),
        key="process memory",
        table=[{"part": part.name, "bytes": part.size, say("three_numbers.is"): part.why} for part in parts],
    )
    shell.source("measured", say("three_numbers.measured", index=record.index))
