"""FlashAttention: what tiles save at any length, then one head of the live session walked tile by tile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from engine.errors import LoupeError
from explorer.components import tile_walk
from explorer.engines import bridge
from explorer.labs import charts, controls, live, picture, shell
from explorer.labs.charts import number_text
from explorer.labs.flash_attention import answer, traffic, walking
from explorer.labs.flash_attention.figures import matrix_figure
from explorer.live.token_payload import TokenList

if TYPE_CHECKING:
    from engine.records import StepRecord
    from engine.session import DecodeSession

TILE = "tile"  # the tile looked at, in the URL
DTYPES = {"float32": 4, "bfloat16": 2, "8 bit": 1}
QUERY_ROWS = (16, 32, 64, 128, 256)


def page() -> None:
    """The bytes first, which need no run; then the walk over the live session."""
    shell.lab(
        "FlashAttention, tile by tile",
        "How can a softmax be worked out when only a few keys fit at a time, and what does that save?",
    )
    stage = shell.stage()
    session = live.live_session()
    _traffic(session, stage)
    shell.section(
        "One head of your run, tile by tile",
        "Query, keys and values are the session’s own. Between tiles only m, l and o are kept, never a row of weights.",
    )
    if session is None:
        live.nothing_yet("The walk over one head’s keys")
    else:
        _walk(session)


def _walk(session: DecodeSession) -> None:
    info, records = session.engine.info, session.records
    with st.container(horizontal=True, key="walk_controls"):
        step = controls.whole("Step", url="step", default=len(records) - 1, low=0, high=len(records) - 1)
        layer = controls.whole("Layer", url="layer", default=info.num_layers // 2, low=0, high=info.num_layers - 1)
        head = controls.whole("Head", url="head", default=0, low=0, high=info.num_heads - 1)
        record = records[step]
        least = walking.smallest_tile(record.kv_len)
        size = controls.whole(
            "Keys per tile",
            url="size",
            default=walking.usual_tile(record.kv_len),
            low=least,
            high=record.kv_len,
            hint="Kernels take 64 or 128; a short prompt shows more with a few.",
        )
    try:
        done = walking.walked(bridge.read_head(session, step, layer, head).result(), size)
    except LoupeError as error:
        st.text(str(error))
        return
    _picture(session, record, done, f"{session.id}/{session.epoch}/{step}/{layer}/{head}/{size}")
    _last_word(done, info.dtype, step, layer, head)


def _picture(session: DecodeSession, record: StepRecord, done: walking.Walk, key: str) -> None:
    ids = session.recipe.token_ids[: record.kv_len]
    tokens = TokenList(session.engine.tokenizer).json(ids, session.roles[: record.kv_len])
    tile_walk.mount(walking.frame_of(done, tokens, key=key, tile=_asked_tile(len(done.tiles))), _on_tile_change)
    table = walking.rows(done)
    with st.expander("The numbers", key="walk_numbers"):
        st.download_button(
            "CSV", charts.csv_text(table), "loupe-tile-walk.csv", "text/csv", key="walk_csv", on_click="ignore"
        )
        scores = ("largest score", "m", "earlier sums times", "l")
        formats = {**dict.fromkeys(scores, "%.4f"), "furthest from exact": "%.1e"}
        st.dataframe(
            table,
            hide_index=True,
            column_config={name: st.column_config.NumberColumn(format=f) for name, f in formats.items()},
        )


def _last_word(done: walking.Walk, dtype: str, step: int, layer: int, head: int) -> None:
    tiles, largest = len(done.tiles), done.off[-1]
    st.text(
        f"After {_plural(tiles, 'tile')}, {done.rescaled} of which scaled down what came before, the output differs "
        f"from the exact one by {largest:.1e} at most. Two passes over stored weights, in float32 as well, differ by "
        f"{done.two_passes_off:.1e}: the same answer, rounded in another order."
    )
    if done.inputs.sink is not None:
        st.text("This head has a sink, a logit without a key. The walk begins with it: m is the sink, l is 1, o is 0.")
    if not done.inputs.visible.all():
        hidden = int((~done.inputs.visible).sum())
        st.text(f"This layer’s mask hides {_plural(hidden, 'key')} from this query: their scores are −∞.")
    copied = "" if dtype == "float32" else f", read from {dtype}"
    shell.source(
        "measured",
        f"the live query, keys and values of step {step}, layer {layer}, head {head}{copied}; tiles walked in float32, "
        "the exact output in float64 from the same numbers",
    )


def _asked_tile(tiles: int) -> int:
    """The tile a link names; the first where it names none that is."""
    asked = st.query_params.get(TILE, "")
    if asked.isascii() and asked.isdigit() and len(asked) <= 9 and 1 <= int(asked) <= tiles:
        return int(asked)
    if asked:
        st.text(f"There is no tile {asked[:20]} here: they go from 1 to {tiles:,}. The first is shown.")
        del st.query_params[TILE]
    return 1


def _on_tile_change() -> None:
    tile = tile_walk.settled()
    if tile is not None:
        st.query_params[TILE] = str(tile)


def _traffic(session: DecodeSession | None, stage: shell.Stage) -> None:
    with stage.controls:
        length = controls.whole("Prompt tokens N", url="n", default=4096, low=1, high=10_000_000)
        width = controls.whole("Head width d", url="d", default=_head_dim(session), low=1, high=1024)
        dtype = controls.choice("Numbers", list(DTYPES), url="dtype", default="bfloat16")
        query_rows = controls.choice("Queries per tile", QUERY_ROWS, url="rows", default=128)
        tile_keys = controls.choice("Keys per tile", QUERY_ROWS, url="columns", default=128)
    setting = traffic.Setting(width, DTYPES[dtype], query_rows, tile_keys)
    at = traffic.traffic(length, setting)
    kv_len = session.records[-1].kv_len if session is not None else 0
    here = traffic.traffic(kv_len, setting) if kv_len else None
    swept = traffic.sweep(setting, sorted({*traffic.LENGTHS, length, *([kv_len] if kv_len else [])}))
    with stage.answer:
        shell.answer(
            answer.sentence(at),
            "computed",
            f"4·N²·b + 4·N·d·b against b·N·d·(2 + 2·⌈N ÷ rows⌉); {setting.words}",
            terms=("FlashAttention", "softmax", "attention weight"),
        )
    with stage.picture:
        picture.show(answer.moved(swept, setting, at, here), key="traffic")
    part = shell.details("Scores held at once, and every number", key="tiles_held")
    if part:
        with part:
            st.text(_more(at))
            charts.show(matrix_figure(swept, setting, here), key="scores held", table=traffic.rows(swept))
            shell.source("computed", "the formulas stand in each curve’s hover, with their inputs")


def _more(at: traffic.Traffic) -> str:
    return (
        f"{100 * at.share:.1f} % of what unfused attention moves is scores and weights that nobody keeps. Each tensor "
        f"moved once would be {number_text(at.ideal, 'B')}, {at.naive / at.ideal:.3g} times less. A decode step has "
        f"one query: its scores are {number_text(at.decode_row, 'B')}, so this is about prompts."
    )


def _head_dim(session: DecodeSession | None) -> int:
    return session.engine.info.head_dim if session is not None else 64


def _plural(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
