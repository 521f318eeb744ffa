"""The calculator: what a token and a sequence take, and how many sequences fit, against context and batch."""

from __future__ import annotations

from dataclasses import dataclass, replace

import streamlit as st

from engine.costs.bytes import PRECISIONS
from engine.measure.hardware import HARDWARE
from explorer.labs import charts, controls, picture, shell
from explorer.labs.charts import number_text
from explorer.labs.kv_memory import answer, figures
from explorer.labs.kv_memory.capacity import Room
from explorer.labs.kv_memory.variants import kinds, own_kind
from explorer.labs.model_choice import ONLY_CACHE, ChosenModel
from explorer.pages.theme import format_count
from explorer.say import words_beside

say = words_beside(__file__)

OTHER_MEMORY = say("calculator.other_memory")
DEVICES = (*(name for name, device in HARDWARE.items() if device.memory), OTHER_MEMORY)
DOUBTFUL = say("calculator.not_whole")
KV_TERMS = ("KV cache", "GQA", "dtype")  # that its answer speaks of
COMPARED = ("fp32", "bf16", "q8_0", "q4_0")  # precisions of the cache that are drawn beside the chosen one


@dataclass(frozen=True, slots=True)
class Settings:
    """What the controls say. `place` is the memory in words: "one H100 SXM"."""

    room: Room
    context: int
    place: str


def settings(chosen: ChosenModel) -> Settings:
    """The controls, in the order they are reached for; what is rarely moved is folded away."""
    context = controls.ladder(say("calculator.context"), figures.CONTEXTS, url="ctx", default=8192)
    device = controls.choice(say("calculator.memory"), DEVICES, url="on", default="H100 SXM")
    memory = (
        HARDWARE[device].memory
        if device != OTHER_MEMORY
        else 1e9 * controls.number(say("calculator.memory_each"), url="gb", default=80.0, low=0.1, high=100_000.0)
    )
    kv = controls.choice(say("calculator.cache_as"), list(PRECISIONS), url="kv", default="bf16")
    with shell.more("kv_more", ("w", "n", "use")):
        weights = controls.choice(say("calculator.weights_as"), list(PRECISIONS), url="w", default="bf16")
        count = controls.whole(say("calculator.devices_label"), url="n", default=1, low=1, high=4096)
        usable = controls.slider(
            say("calculator.usable"),
            url="use",
            default=0.9,
            low=0.5,
            high=1.0,
            step=0.01,
            hint=say("calculator.usable_hint"),
        )
    room = Room(chosen.shape, memory * count, usable, PRECISIONS[weights], PRECISIONS[kv])
    return Settings(room, context, _place(device, count, room))


def _place(device: str, count: int, room: Room) -> str:
    if device == OTHER_MEMORY:
        return say("calculator.of_memory", memory=number_text(room.memory, "B"))
    return (
        say("calculator.one_device", device=device)
        if count == 1
        else say("calculator.devices", count=f"{count:,}", device=device)
    )


def show(chosen: ChosenModel, asked: Settings, stage: shell.Stage) -> None:
    """The answer and its picture; without the weights' size only what needs none."""
    room, context, ways = asked.room, asked.context, kinds(chosen.shape)
    with stage.answer:
        each = say(
            "calculator.per_token", formula=own_kind(room.shape).formula, kv_bytes_each=f"{room.kv_bytes_each:g}"
        )
        origin = f"{each}; {_fit_formula(room, context)}" if room.knows_weights else each
        shell.answer(answer.sentence(chosen.name, room, context, asked.place), "computed", origin, terms=KV_TERMS)
        for said in chosen.shape.remarks:
            st.text(f"{said[0].upper()}{said[1:]}.")
        if not room.knows_weights:
            st.text(say("calculator.not_computed", only_cache=ONLY_CACHE))
    with stage.picture:
        if room.knows_weights:
            picture.show(answer.memory_bar(room, context, asked.place), key="kv_bar", size="low")
        size: picture.Size = "rest" if room.knows_weights else "tall"
        picture.show(answer.by_length(room, context, ways), key="kv_by_length", size=size)


def more(chosen: ChosenModel, asked: Settings) -> None:
    """What is folded away: the numbers to the byte, other precisions, and batches."""
    room, context = asked.room, asked.context
    part = shell.details(say("calculator.sizes"), key="kv_numbers")
    if part:
        with part:
            _numbers(chosen, room, context)
    if not room.knows_weights:
        return
    part = shell.details(say("calculator.fit"), key="kv_fit")
    if part:
        with part:
            _fit(room, context)
    part = shell.details(say("calculator.batch"), key="kv_batch")
    if part:
        with part:
            _by_batch(room, context)


def _numbers(chosen: ChosenModel, room: Room, context: int) -> None:
    is_sure = not room.shape.doubts
    sizes = {
        say("calculator.one_token"): room.shape.kv_bytes_per_token(room.kv_bytes_each),
        say("calculator.one_sequence", context=f"{context:,}"): room.shape.kv_bytes(context, room.kv_bytes_each),
        **({"Weights": room.weights} if room.knows_weights else {}),
    }
    about = "" if is_sure else "≈ "
    rows = [
        {"what": name, "size": about + number_text(size, "B"), "bytes": f"{size:,}" if is_sure else DOUBTFUL}
        for name, size in sizes.items()
    ]
    if room.knows_weights:
        rows.append(
            {"what": say("calculator.fitting"), "size": about + format_count(room.sessions(context)), "bytes": ""}
        )
    charts.table(rows, name="cache sizes")
    ways = kinds(chosen.shape)
    by_length = [
        {
            say("calculator.context_column"): tokens,
            **{
                say("calculator.bytes_column", name=way.name): way.shape.kv_bytes(tokens, room.kv_bytes_each)
                for way in ways
            },
        }
        for tokens in figures.CONTEXTS
    ]
    charts.numbers(by_length, say("calculator.sheet"))
    for way in ways:
        shell.source(
            "computed",
            say("calculator.formula", name=way.name, formula=way.formula, kv_bytes_each=f"{room.kv_bytes_each:g}"),
        )
    assumed = [say("calculator.assumed", words=words) for words in chosen.shape.assumed]
    published = say("calculator.model", name=chosen.name, source=chosen.source)
    shell.source("published", "; ".join([published, *assumed]))


def _fit_formula(room: Room, context: int) -> str:
    return say(
        "calculator.fit_formula",
        memory=number_text(room.memory, "B"),
        usable=f"{room.usable:g}",
        weights=number_text(room.weights, "B"),
        context=number_text(room.sequence(context), "B"),
        block=room.block,
    )


def _fit(room: Room, context: int) -> None:
    named = {name: replace(room, kv_bytes_each=PRECISIONS[name]) for name in COMPARED}
    chosen = next((name for name, other in named.items() if other.kv_bytes_each == room.kv_bytes_each), "chosen")
    named.setdefault(chosen, room)
    if not any(other.sessions(figures.CONTEXTS[0]) for other in named.values()):
        st.text(say("calculator.none_fits"))
        return
    rows = [
        {
            say("calculator.context_column"): tokens,
            **{say("calculator.cache_in", name=name): other.sessions(tokens) for name, other in named.items()},
        }
        for tokens in figures.CONTEXTS
    ]
    charts.show(figures.sessions_by_context(named, chosen, context), key="sessions that fit", table=rows)
    shell.source("computed", _fit_formula(room, context))


def _by_batch(room: Room, context: int) -> None:
    contexts = sorted({1024, 8192, 65_536, context})
    rows = [
        {
            "sequences": batch,
            **{say("calculator.each_column", n=f"{n:,}"): room.weights + batch * room.sequence(n) for n in contexts},
        }
        for batch in figures.BATCHES
    ]
    charts.show(figures.memory_by_batch(room, contexts, charts.palette()), key="memory by batch", table=rows)
    shell.source("computed", say("calculator.batch_formula", weights=number_text(room.weights, "B")))
