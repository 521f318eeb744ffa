"""The same prompt in one sweep, in pieces, and one token at a time: as quick as it gets, and the same cache."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING

import streamlit as st

from explorer.engines import bridge
from explorer.hosting.limits import Hosting
from explorer.labs import charts, controls, progress
from explorer.labs.prefill_decode import figures, here, table, words
from explorer.labs.prefill_decode.measured import SOURCE, run
from explorer.labs.shell import source
from explorer.say import words_beside

if TYPE_CHECKING:
    from engine.llm_engine import LLMEngine
    from engine.studies.chunk_sizes import ChunkStudy

say = words_beside(__file__)

MOST, MOST_IN_A_CLASS = 1_024, 64


def ask(engine: LLMEngine, hosting: Hosting) -> int:
    """How many tokens of prompt."""
    st.text(say("in_pieces.why"))
    most = min(MOST_IN_A_CLASS if hosting.is_hosted else MOST, engine.info.context_limit or MOST)
    return controls.whole(say("in_pieces.tokens"), url="p", default=min(64, most), low=2, high=most)


def show(engine: LLMEngine, tokens: int) -> None:
    """The run, and what it took."""
    study = progress.task("pieces", say("in_pieces.measure"), _begin(engine, tokens), inputs=(engine.info.id, tokens))
    if study is not None and study.runs[0].rounds_ms:
        _results(engine, study)


def _begin(engine: LLMEngine, tokens: int) -> Callable[[progress.TaskProgress], Future[ChunkStudy]]:
    def begin(report: progress.TaskProgress) -> Future[ChunkStudy]:
        ids = bridge.encode(engine, SOURCE, "raw").ids
        return run(engine, bridge.chunks(ids, tokens), report)

    return begin


def _results(engine: LLMEngine, study: ChunkStudy) -> None:
    st.text(words.pieces(study))
    rates = here.rates_here(engine) if here.is_priced(engine) else None
    rows = table.chunk_rows(study)
    for place, figure, key in zip(
        st.columns(2, gap="medium"),
        (figures.chunk_totals(study), figures.chunk_forwards(study, here.sizes_here(engine), rates)),
        ("pieces-total", "pieces-forward"),
        strict=True,
    ):
        with place:
            charts.show(figure, key=key, table=rows)
    source("measured", say("in_pieces.measured", device=engine.info.device))
