"""Handing the cache out: the same sequences under three policies, from the engine's live lengths or typed ones."""

from __future__ import annotations

import streamlit as st

from engine.errors import InvalidSettings
from explorer.labs import charts, controls, live, shell
from explorer.labs.charts import number_text
from explorer.labs.kv_memory import pictures
from explorer.labs.kv_memory.allocation import POLICIES, Allocation, allocate, read_lengths
from explorer.labs.kv_memory.capacity import Room

LIVE, TYPED = "the engine's live sessions", "lengths I type"
CONTROLS = ("of", "lens", "block", "most")  # their names in the URL
EXAMPLE = "37, 100, 520, 1200, 2000, 64"
BLOCKS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
MOST = tuple(2**power for power in range(6, 18))
RULES = {
    "reserve to the maximum": "every sequence gets the longest there may be",
    "power of two": "every sequence gets the next power of two",
    "paged": "⌈length ÷ block⌉ blocks; only the last one can be part empty",
}


def show(room: Room) -> None:
    """Controls, the strips, the pool, and what each policy wastes."""
    st.text("A sequence's length is only known when it ends. What is set aside for it meanwhile, and wasted?")
    columns = st.columns(3)
    with columns[0]:
        source = controls.choice("Lengths of", [TYPED, LIVE], url="of", default=TYPED)
        words = controls.text("Lengths, tokens", url="lens", default=EXAMPLE) if source == TYPED else ""
    with columns[1]:
        block = controls.ladder("Block, tokens", BLOCKS, url="block", default=16)
    with columns[2]:
        most = controls.ladder("Reserved, tokens", MOST, url="most", default=2048)
    lengths = _typed(words) if source == TYPED else _live()
    if lengths:
        _draw(lengths, block, most, room)


def _typed(words: str) -> tuple[int, ...]:
    try:
        return read_lengths(words)
    except InvalidSettings as error:
        st.text(str(error))
        return ()


def _live() -> tuple[int, ...]:
    """Lengths of everybody's sessions on this engine, largest first; nobody's name and nobody's text."""
    engine = live.loaded_engine()
    lengths = live.lengths(engine) if engine else ()
    if not lengths:
        st.text("No session holds a cache just now. Prefill a prompt on the Step page, or type lengths.")
    return lengths


def _draw(lengths: tuple[int, ...], block: int, most: int, room: Room) -> None:
    colours, slot_bytes = charts.palette(), room.shape.kv_bytes_per_token(room.kv_bytes_each)
    each = f"≈ {number_text(slot_bytes, 'B')}" if room.shape.doubts else f"{slot_bytes:,} B"
    try:
        found = [allocate(policy, lengths, most=most, block=block) for policy in POLICIES]
    except InvalidSettings as error:
        st.text(str(error))
        found = [allocate(policy, lengths, most=most, block=block) for policy in POLICIES[1:]]
    charts.show(
        pictures.strips(found, slot_bytes, colours),
        key="memory allocated",
        table=[_row(allocation, slot_bytes) for allocation in found],
    )
    for allocation in found:
        st.text(
            f"{allocation.policy}: {allocation.wasted:,} of {allocation.held:,} slots empty, "
            f"{number_text(allocation.wasted * slot_bytes, 'B')} wasted, {allocation.utilisation:.1%} filled"
        )
    shell.source("computed", f"slots × {each} per token; " + "; ".join(f"{p}: {RULES[p]}" for p in POLICIES))
    shell.source(
        "published",
        "before paging, servers filled 20.4 to 38.2 % of the memory they had set aside, with paging about 96 % "
        "(Kwon et al., SOSP 2023)",
    )
    charts.show(
        pictures.pool(lengths, block, colours),
        key="paged pool",
        table=[
            {"sequence": one, "tokens": length, "blocks": slots // block, "empty slots": slots - length}
            for one, (length, slots) in enumerate(zip(found[-1].lengths, found[-1].slots, strict=True), 1)
        ],
    )


def _row(allocation: Allocation, slot_bytes: int) -> dict[str, object]:
    return {
        "policy": allocation.policy,
        "slots": allocation.held,
        "empty slots": allocation.wasted,
        "bytes": allocation.held * slot_bytes,
        "wasted bytes": allocation.wasted * slot_bytes,
        "filled": round(allocation.utilisation, 4),
    }
