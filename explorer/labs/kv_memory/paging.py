"""Handing the cache out: the same sequences under three policies, from the engine's live lengths or typed ones."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from engine.errors import InvalidSettings
from explorer.labs import charts, controls, live, shell
from explorer.labs.charts import number_text
from explorer.labs.kv_memory import pictures
from explorer.labs.kv_memory.allocation import POLICIES, Allocation, allocate, read_lengths
from explorer.labs.kv_memory.capacity import Room
from explorer.say import words_beside

say = words_beside(__file__)

LIVE, TYPED = say("paging.live"), say("paging.typed")
CONTROLS = ("of", "lens", "block", "most")  # their names in the URL
EXAMPLE = "37, 100, 520, 1200, 2000, 64"
BLOCKS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
MOST = tuple(2**power for power in range(6, 18))
RULES = {
    "reserve to the maximum": say("paging.maximum_rule"),
    "power of two": say("paging.power_rule"),
    "paged": say("paging.paged_rule"),
}


@dataclass(frozen=True, slots=True)
class Sequences:
    """What the controls ask for: whose lengths, typed ones as they stand, a block's tokens, and the tokens reserved."""

    source: str
    typed: str
    block: int
    most: int


def ask() -> Sequences:
    """The controls."""
    st.text(say("paging.why"))
    columns = st.columns(3)
    with columns[0]:
        source = controls.choice(say("paging.lengths_of"), [TYPED, LIVE], url="of", default=TYPED)
        words = controls.text(say("paging.lengths"), url="lens", default=EXAMPLE) if source == TYPED else ""
    with columns[1]:
        block = controls.ladder(say("paging.block"), BLOCKS, url="block", default=16)
    with columns[2]:
        most = controls.ladder(say("paging.reserved"), MOST, url="most", default=2048)
    return Sequences(source, words, block, most)


def show(asked: Sequences, room: Room) -> None:
    """The strips, the pool, and what each policy wastes."""
    lengths = _typed(asked.typed) if asked.source == TYPED else _live()
    if lengths:
        _draw(lengths, asked.block, asked.most, room)


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
        st.text(say("paging.no_session"))
    return lengths


def _draw(lengths: tuple[int, ...], block: int, most: int, room: Room) -> None:
    colours, slot_bytes = charts.palette(), room.shape.kv_bytes_per_token(room.kv_bytes_each)
    each = (
        say("paging.about", slot_bytes=number_text(slot_bytes, "B"))
        if room.shape.doubts
        else say("paging.exactly", slot_bytes=f"{slot_bytes:,}")
    )
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
            say(
                "paging.wasted",
                policy=allocation.policy,
                empty=f"{allocation.wasted:,}",
                held=f"{allocation.held:,}",
                wasted=number_text(allocation.wasted * slot_bytes, "B"),
                utilisation=f"{allocation.utilisation:.1%}",
            )
        )
    shell.source(
        "computed",
        "; ".join([say("paging.slots", each=each), *(say("paging.rule", policy=p, rule=RULES[p]) for p in POLICIES)]),
    )
    shell.source(
        "published",
        say("paging.published"),
    )
    charts.show(
        pictures.pool(lengths, block, colours),
        key="paged pool",
        table=[
            {"sequence": one, "tokens": length, "blocks": slots // block, say("paging.empty_slots"): slots - length}
            for one, (length, slots) in enumerate(zip(found[-1].lengths, found[-1].slots, strict=True), 1)
        ],
    )


def _row(allocation: Allocation, slot_bytes: int) -> dict[str, object]:
    return {
        "policy": allocation.policy,
        "slots": allocation.held,
        say("paging.empty_slots"): allocation.wasted,
        "bytes": allocation.held * slot_bytes,
        say("paging.wasted_bytes"): allocation.wasted * slot_bytes,
        "filled": round(allocation.utilisation, 4),
    }
