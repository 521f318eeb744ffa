"""Why queries are not cached: no later step reads one. Drawn from the live session's own steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from engine.costs.shape import ModelShape
from explorer.engines import bridge
from explorer.labs import charts, shell
from explorer.labs.charts import number_text
from explorer.labs.kv_memory import cache_pictures
from explorer.say import words_beside

if TYPE_CHECKING:
    from engine.session import DecodeSession

say = words_beside(__file__)

MOST_TOKENS = 24  # a picture that is read token by token
WHY = say("queries.why")


def show(session: DecodeSession) -> None:
    """What a kept query would cost, who would read it, and why."""
    record, engine = session.records[-1], session.engine
    info = engine.info
    bytes_each = info.kv_bytes_per_token / info.shape.kv_elements_per_token
    each = query_bytes_per_token(info.shape, bytes_each)
    st.text(say("queries.once"))
    with st.container(horizontal=True, key="library_queries"):
        st.metric(say("queries.key_value"), number_text(info.kv_bytes_per_token, "B"), border=True)
        st.metric(
            say("queries.queries"),
            number_text(each, "B"),
            border=True,
            help=query_formula(info.shape, bytes_each),
        )
        st.metric(say("queries.later"), "0", border=True, help=say("queries.later_hint"))
    prompt = len(session.recipe.prompt_ids)
    labels = bridge.token_labels(engine, session.recipe.token_ids[: record.kv_len])[:MOST_TOKENS]
    if prompt <= len(labels):
        _picture(prompt, labels)
    else:
        st.text(say("queries.too_long", prompt=f"{prompt:,}"))
    st.text(WHY)
    st.text(say("queries.kept", capture_bytes=number_text(record.memory.capture_bytes, "B")))


def query_bytes_per_token(shape: ModelShape, bytes_each: float) -> int:
    """Bytes of one token's queries over all layers: as many heads as ask, not as many as are cached."""
    return round(shape.num_layers * shape.num_heads * shape.head_dim * bytes_each)


def query_formula(shape: ModelShape, bytes_each: float) -> str:
    """The same, written out."""
    return say(
        "queries.formula",
        num_layers=shape.num_layers,
        num_heads=shape.num_heads,
        head_dim=shape.head_dim,
        bytes_each=f"{bytes_each:g}",
    )


def _picture(prompt: int, labels: list[str]) -> None:
    keys, queries = cache_pictures.reads(prompt, len(labels) - prompt + 1)
    rows = [
        {
            "step": step,
            say("queries.kv_read"): int(keys[step].sum()),
            say("queries.queries_read"): int(queries[step].sum()),
            say("queries.earlier"): int(queries[step, : prompt + step - 1].sum()) if step else 0,
        }
        for step in range(len(keys))
    ]
    safe = [charts.plain(label) for label in labels]
    charts.show(cache_pictures.who_reads(prompt, safe, charts.palette()), key="who reads what", table=rows)
    shell.source("computed", say("queries.computed"))
