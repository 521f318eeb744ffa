"""Why queries are not cached: no later step reads one. Drawn from the live session's own steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from engine.costs.shape import ModelShape
from explorer.engines import bridge
from explorer.labs import charts, shell
from explorer.labs.charts import number_text
from explorer.labs.kv_memory import cache_pictures

if TYPE_CHECKING:
    from engine.session import DecodeSession

MOST_TOKENS = 24  # a picture that is read token by token
WHY = (
    "Each step multiplies the newest token's query with every cached key and mixes the cached values by the result. "
    "That result goes up to the next layer, and the query has done its work: what it found is in the keys and values "
    "of the layers above. A later token has a query of its own."
)


def show(session: DecodeSession) -> None:
    """What a kept query would cost, who would read it, and why."""
    record, engine = session.records[-1], session.engine
    info = engine.info
    bytes_each = info.kv_bytes_per_token / info.shape.kv_elements_per_token
    each = query_bytes_per_token(info.shape, bytes_each)
    st.text("Keys and values are read at every later step. A query is used once.")
    with st.container(horizontal=True, key="library_queries"):
        st.metric("Key and value of one token", number_text(info.kv_bytes_per_token, "B"), border=True)
        st.metric(
            "Its queries, were they kept",
            number_text(each, "B"),
            border=True,
            help=query_formula(info.shape, bytes_each),
        )
        st.metric("Later steps that would read them", "0", border=True, help="See the right-hand square below")
    prompt = len(session.recipe.prompt_ids)
    labels = bridge.token_labels(engine, session.recipe.token_ids[: record.kv_len])[:MOST_TOKENS]
    if prompt <= len(labels):
        _picture(prompt, labels)
    else:
        st.text(
            f"The prompt alone has {prompt:,} tokens, too many to draw one by one. A shorter one shows the squares."
        )
    st.text(WHY)
    st.text(
        "Kept all the same: the queries and logits of the last few steps, "
        f"{number_text(record.memory.capture_bytes, 'B')}, so that this program can draw their attention. "
        "Decoding never reads them."
    )


def query_bytes_per_token(shape: ModelShape, bytes_each: float) -> int:
    """Bytes of one token's queries over all layers: as many heads as ask, not as many as are cached."""
    return round(shape.num_layers * shape.num_heads * shape.head_dim * bytes_each)


def query_formula(shape: ModelShape, bytes_each: float) -> str:
    """The same, written out."""
    return f"{shape.num_layers} layers × {shape.num_heads} query heads × {shape.head_dim} × {bytes_each:g} B"


def _picture(prompt: int, labels: list[str]) -> None:
    keys, queries = cache_pictures.reads(prompt, len(labels) - prompt + 1)
    rows = [
        {
            "step": step,
            "keys and values read": int(keys[step].sum()),
            "queries read": int(queries[step].sum()),
            "of them from earlier steps": int(queries[step, : prompt + step - 1].sum()) if step else 0,
        }
        for step in range(len(keys))
    ]
    safe = [charts.plain(label) for label in labels]
    charts.show(cache_pictures.who_reads(prompt, safe, charts.palette()), key="who reads what", table=rows)
    shell.source(
        "computed", "step 0 feeds the prompt; step s feeds one token, whose query reads every key up to its own"
    )
