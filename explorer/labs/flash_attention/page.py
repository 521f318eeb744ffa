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
from explorer.say import words_beside

if TYPE_CHECKING:
    from engine.records import StepRecord
    from engine.session import DecodeSession

say = words_beside(__file__)

TILE = "tile"  # the tile looked at, in the URL
DTYPES = {"float32": 4, "bfloat16": 2, "8 bit": 1}
QUERY_ROWS = (16, 32, 64, 128, 256)


def page() -> None:
    """The bytes first, which need no run; then the walk over the live session."""
    shell.lab(
        say("page.title"),
        say("page.question"),
    )
    stage = shell.stage()
    session = live.live_session()
    _traffic(session, stage)
    shell.section(
        say("page.walk"),
        say("page.walk_why"),
    )
    if session is None:
        live.nothing_yet(say("page.needs"))
    else:
        _walk(session)


def _walk(session: DecodeSession) -> None:
    info, records = session.engine.info, session.records
    with st.container(horizontal=True, key="walk_controls"):
        step = controls.whole(say("page.step"), url="step", default=len(records) - 1, low=0, high=len(records) - 1)
        layer = controls.whole(
            say("page.layer"), url="layer", default=info.num_layers // 2, low=0, high=info.num_layers - 1
        )
        head = controls.whole(say("page.head"), url="head", default=0, low=0, high=info.num_heads - 1)
        record = records[step]
        least = walking.smallest_tile(record.kv_len)
        size = controls.whole(
            say("page.tile"),
            url="size",
            default=walking.usual_tile(record.kv_len),
            low=least,
            high=record.kv_len,
            hint=say("page.tile_hint"),
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
    with st.expander(say("page.numbers"), key="walk_numbers"):
        st.download_button(
            "CSV", charts.csv_text(table), "loupe-tile-walk.csv", "text/csv", key="walk_csv", on_click="ignore"
        )
        scores = (say("page.largest"), "m", say("page.earlier"), "l")
        formats = {**dict.fromkeys(scores, "%.4f"), say("page.furthest"): "%.1e"}
        st.dataframe(
            table,
            hide_index=True,
            column_config={name: st.column_config.NumberColumn(format=f) for name, f in formats.items()},
        )


def _last_word(done: walking.Walk, dtype: str, step: int, layer: int, head: int) -> None:
    tiles, largest = len(done.tiles), done.off[-1]
    st.text(
        say(
            "page.walked",
            tiles=say("page.tiles", n=tiles),
            rescaled=done.rescaled,
            largest=f"{largest:.1e}",
            two_passes_off=f"{done.two_passes_off:.1e}",
        )
    )
    if done.inputs.sink is not None:
        st.text(say("page.sink"))
    if not done.inputs.visible.all():
        hidden = int((~done.inputs.visible).sum())
        st.text(say("page.hidden", n=hidden))
    of = {"step": step, "layer": layer, "head": head}
    shell.source(
        "measured", say("page.measured", **of) if dtype == "float32" else say("page.copied", **of, dtype=dtype)
    )


def _asked_tile(tiles: int) -> int:
    """The tile a link names; the first where it names none that is."""
    asked = st.query_params.get(TILE, "")
    if asked.isascii() and asked.isdigit() and len(asked) <= 9 and 1 <= int(asked) <= tiles:
        return int(asked)
    if asked:
        st.text(say("page.no_tile", asked=asked[:20], tiles=f"{tiles:,}"))
        del st.query_params[TILE]
    return 1


def _on_tile_change() -> None:
    tile = tile_walk.settled()
    if tile is not None:
        st.query_params[TILE] = str(tile)


def _traffic(session: DecodeSession | None, stage: shell.Stage) -> None:
    with stage.controls:
        length = controls.whole(say("page.prompt"), url="n", default=4096, low=1, high=10_000_000)
        width = controls.whole(say("page.width"), url="d", default=_head_dim(session), low=1, high=1024)
        dtype = controls.choice(say("page.dtype"), list(DTYPES), url="dtype", default="bfloat16")
        query_rows = controls.choice(say("page.query_rows"), QUERY_ROWS, url="rows", default=128)
        tile_keys = controls.choice(say("page.tile_keys"), QUERY_ROWS, url="columns", default=128)
    setting = traffic.Setting(width, DTYPES[dtype], query_rows, tile_keys)
    at = traffic.traffic(length, setting)
    kv_len = session.records[-1].kv_len if session is not None else 0
    here = traffic.traffic(kv_len, setting) if kv_len else None
    swept = traffic.sweep(setting, sorted({*traffic.LENGTHS, length, *([kv_len] if kv_len else [])}))
    with stage.answer:
        shell.answer(
            answer.sentence(at),
            "computed",
            say("page.formula", words=setting.words),
            terms=("FlashAttention", "softmax", "attention weight"),
        )
    with stage.picture:
        picture.show(answer.moved(swept, setting, at, here), key="traffic")
    part = shell.details(say("page.scores"), key="tiles_held")
    if part:
        with part:
            st.text(_more(at))
            charts.show(matrix_figure(swept, setting, here), key="scores held", table=traffic.rows(swept))
            shell.source("computed", say("page.in_hover"))


def _more(at: traffic.Traffic) -> str:
    return say(
        "page.share",
        share=f"{100 * at.share:.1f}",
        ideal=number_text(at.ideal, "B"),
        naive=f"{at.naive / at.ideal:.3g}",
        decode_row=number_text(at.decode_row, "B"),
    )


def _head_dim(session: DecodeSession | None) -> int:
    return session.engine.info.head_dim if session is not None else 64
