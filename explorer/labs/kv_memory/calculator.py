"""The calculator: bytes per token and per sequence, and how many sessions fit, against context and batch."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from engine.costs.bytes import PRECISIONS
from engine.measure.hardware import HARDWARE
from explorer.labs import charts, controls, shell
from explorer.labs.charts import number_text
from explorer.labs.kv_memory import figures
from explorer.labs.kv_memory.capacity import Room
from explorer.labs.kv_memory.variants import Kind, kinds, own_kind
from explorer.labs.model_choice import ONLY_CACHE, ChosenModel
from explorer.pages.theme import format_count

OTHER_MEMORY = "another amount"
DEVICES = (*(name for name, device in HARDWARE.items() if device.memory), OTHER_MEMORY)
DOUBTFUL = "Not to the byte: this config was not wholly understood. What was not stands above."
COMPARED = ("fp32", "bf16", "q8_0", "q4_0")  # precisions of the cache that are drawn beside the chosen one


def show(chosen: ChosenModel) -> Room:
    """Controls, four numbers, three charts; without the weights' size only what needs none. Returns the controls."""
    room, context = _controls(chosen)
    ways = kinds(chosen.shape)
    _headline(room, context)
    for said in chosen.shape.remarks:
        st.text(f"{said[0].upper()}{said[1:]}.")
    if not room.knows_weights:
        st.text(f"How many sessions fit is not computed: {ONLY_CACHE}")
    shell.source("published", f"{chosen.name}: {chosen.source}" + _assumed(chosen))
    _by_context(room, context, ways)
    if room.knows_weights:
        _fit(room, context)
        _by_batch(room, context)
    return room


def _controls(chosen: ChosenModel) -> tuple[Room, int]:
    columns = st.columns(3)
    with columns[0]:
        kv = controls.choice("Cache kept as", list(PRECISIONS), url="kv", default="bf16")
        weights = controls.choice("Weights kept as", list(PRECISIONS), url="w", default="bf16")
    with columns[1]:
        context = controls.ladder("Context, tokens", figures.CONTEXTS, url="ctx", default=8192)
        usable = controls.slider(
            "Usable share of memory",
            url="use",
            default=0.9,
            low=0.5,
            high=1.0,
            step=0.01,
            hint="What weights and caches may take; the rest is for activations and the runtime",
        )
    with columns[2]:
        device = controls.choice("Memory of", DEVICES, url="on", default="H100 SXM")
        count = controls.whole("Devices", url="n", default=1, low=1, high=4096)
        memory = (
            HARDWARE[device].memory
            if device != OTHER_MEMORY
            else 1e9 * controls.number("Memory of each, GB", url="gb", default=80.0, low=0.1, high=100_000.0)
        )
    return Room(chosen.shape, memory * count, usable, PRECISIONS[weights], PRECISIONS[kv]), context


def _headline(room: Room, context: int) -> None:
    is_sure = not room.shape.doubts
    sizes = {
        "One token": room.shape.kv_bytes_per_token(room.kv_bytes_each),
        f"One sequence of {context:,}": room.shape.kv_bytes(context, room.kv_bytes_each),
        **({"Weights": room.weights} if room.knows_weights else {}),
    }
    with st.container(horizontal=True, key="library_headline"):
        for name, size in sizes.items():
            over = ", over all layers" if name == "One token" else ""
            exact = f"{size:,} B{over}" if is_sure else DOUBTFUL
            st.metric(name, ("" if is_sure else "≈ ") + number_text(size, "B"), border=True, help=exact)
        if room.knows_weights:
            fit = room.sessions(context)
            shown = ("" if is_sure else "≈ ") + format_count(fit)
            st.metric("Sessions that fit", shown, border=True, help=_fit_formula(room, context))
    if not room.knows_weights:
        return
    if room.for_caches <= 0:
        st.text(
            f"The weights alone take {number_text(room.weights, 'B')}, more than the {_usable(room)} that may be used. "
            "Take more devices, or keep the weights in fewer bits."
        )
    elif fit == 0:
        st.text(f"Not one sequence of {context:,} tokens fits. The longest that does has {room.longest(1):,}.")


def _usable(room: Room) -> str:
    return number_text(room.memory * room.usable, "B")


def _fit_formula(room: Room, context: int) -> str:
    return (
        f"({number_text(room.memory, 'B')} × {room.usable:g} − {number_text(room.weights, 'B')} of weights) "
        f"÷ {number_text(room.sequence(context), 'B')} each, in blocks of {room.block} tokens"
    )


def _assumed(chosen: ChosenModel) -> str:
    return "".join(f"; taken for granted: {words}" for words in chosen.shape.assumed)


def _by_context(room: Room, context: int, ways: tuple[Kind, ...]) -> None:
    shell.section("Bytes of one sequence", "As the model keeps its cache, and as it could be kept.")
    limits = {"left beside the weights": room.for_caches, "weights": float(room.weights)} if room.knows_weights else {}
    rows = [
        {
            "context, tokens": tokens,
            **{f"{way.name}, B": way.shape.kv_bytes(tokens, room.kv_bytes_each) for way in ways},
        }
        for tokens in figures.CONTEXTS
    ]
    charts.show(
        figures.bytes_by_context(ways, room.kv_bytes_each, context, limits, charts.palette()),
        key="cache by context",
        table=rows,
    )
    shell.source("computed", f"{own_kind(room.shape).formula} × {room.kv_bytes_each:g} B × tokens")


def _fit(room: Room, context: int) -> None:
    shell.section("How many sessions fit", "The same room for caches, kept in other precisions.")
    named = {name: replace(room, kv_bytes_each=PRECISIONS[name]) for name in COMPARED}
    chosen = next((name for name, other in named.items() if other.kv_bytes_each == room.kv_bytes_each), "chosen")
    named.setdefault(chosen, room)
    if not any(other.sessions(figures.CONTEXTS[0]) for other in named.values()):
        st.text("None in any of them: not even the shortest sequence has room beside the weights.")
        return
    rows = [
        {"context, tokens": tokens, **{f"cache in {name}": other.sessions(tokens) for name, other in named.items()}}
        for tokens in figures.CONTEXTS
    ]
    charts.show(figures.sessions_by_context(named, chosen, context), key="sessions that fit", table=rows)
    shell.source("computed", _fit_formula(room, context))


def _by_batch(room: Room, context: int) -> None:
    shell.section("The bill of a batch", "Weights are held once, each sequence's cache for itself.")
    contexts = sorted({1024, 8192, 65_536, context})
    rows = [
        {"sequences": batch, **{f"{n:,} tokens each, B": room.weights + batch * room.sequence(n) for n in contexts}}
        for batch in figures.BATCHES
    ]
    charts.show(figures.memory_by_batch(room, contexts, charts.palette()), key="memory by batch", table=rows)
    shell.source("computed", f"{number_text(room.weights, 'B')} of weights + sequences × cache of one, in whole blocks")
