"""The lab's answer: what a token and a sequence take, how many fit, and the picture of both."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.labs.charts import number_text
from explorer.labs.kv_memory.capacity import Room
from explorer.labs.kv_memory.figures import CONTEXTS
from explorer.labs.kv_memory.variants import Kind
from explorer.labs.picture import Bar, Bars, Dash, Level, Line, Part, Plot, Point, Role, log_axis
from explorer.labs.shell import Answer
from explorer.pages.theme import format_count
from explorer.say import words_beside

say = words_beside(__file__)

LOOKS: tuple[tuple[Role, Dash], ...] = (("accent", "solid"), ("forced", "dash"), ("gen", "dot"), ("k", "dash"))


def sentence(name: str, room: Room, context: int, place: str) -> Answer:
    """What one token and one sequence take; how many sequences fit in `place`, where the weights are known."""
    about = "≈ " if room.shape.doubts else ""
    names = {"name": name, "place": place, "context": format_count(context)}
    numbers = {
        "token": about + number_text(room.shape.kv_bytes_per_token(room.kv_bytes_each), "B"),
        "sequence": about + number_text(room.shape.kv_bytes(context, room.kv_bytes_each), "B"),
    }
    if not room.knows_weights:
        return Answer(say.unfilled("answer.keeps"), numbers, names)
    numbers |= {"weights": about + number_text(room.weights, "B"), "usable": number_text(_usable(room), "B")}
    if room.for_caches <= 0:
        return Answer(say.unfilled("answer.no_room"), numbers, names)
    fit = room.sessions(context)
    if not fit:
        numbers |= {"longest": format_count(room.longest(1))}
        return Answer(say.unfilled("answer.none_fits"), numbers, names)
    numbers |= {"fit": about + format_count(fit)}
    return Answer(say.unfilled("answer.fit"), numbers, names)


def memory_bar(room: Room, context: int, place: str) -> Bars:
    """The memory, and what is in it: weights, as many caches as fit, and what stays free."""
    weights = Part(
        say("answer.weights", weights=number_text(room.weights, "B")),
        room.weights,
        say("answer.weights_detail"),
        "prompt",
    )
    fit = room.sessions(context)
    if not fit:
        one = Part(say("answer.sequence"), room.sequence(context), number_text(room.sequence(context), "B"))
        there = Part(say("answer.usable"), _usable(room), number_text(_usable(room), "B"), "mute", hollow=True)
        takes = Bar(say("answer.with_one"), (weights, one), number_text(room.weights + one.size, "B"), strong=True)
        return Bars("", (takes, Bar(place, (there,), number_text(_usable(room), "B"))))
    caches = fit * room.sequence(context)
    left = room.for_caches - caches
    kept = room.memory - _usable(room)
    parts = (
        weights,
        Part(
            say("answer.caches", n=fit, caches=number_text(caches, "B")),
            caches,
            say("answer.caches_detail", fit=format_count(fit), context=number_text(room.sequence(context), "B")),
        ),
        Part(say("answer.left", left=number_text(left, "B")), left, say("answer.left_detail"), "accent", hollow=True),
        Part(say("answer.free", kept=number_text(kept, "B")), kept, say("answer.free_detail"), "mute", hollow=True),
    )
    return Bars(say("answer.memory"), (Bar(place, parts, number_text(room.memory, "B")),))


def by_length(room: Room, context: int, ways: Sequence[Kind]) -> Plot:
    """Bytes of one sequence against its length, as the model keeps its cache and as it could be kept."""
    each = room.kv_bytes_each
    sizes = {way.name: [way.shape.kv_bytes(tokens, each) for tokens in CONTEXTS] for way in ways[: len(LOOKS)]}
    lines = tuple(
        Line(name, CONTEXTS, found, [number_text(size, "B") for size in found], colour, dash, wide=not i)
        for i, ((name, found), (colour, dash)) in enumerate(zip(sizes.items(), LOOKS, strict=False))
    )
    here = room.shape.kv_bytes(context, each)
    limits = (
        (Level(room.for_caches, say("answer.room", for_caches=number_text(room.for_caches, "B"))),)
        if room.knows_weights and room.for_caches > 0
        else ()
    )
    return Plot(
        title=say("answer.title"),
        x=log_axis(say("answer.tokens"), CONTEXTS[0], CONTEXTS[-1], ticks=CONTEXTS[::2]),
        y=log_axis("", min(map(min, sizes.values())), max(map(max, sizes.values())), "B"),
        lines=lines,
        points=(Point("chosen", context, here, number_text(here, "B"), label=number_text(here, "B")),),
        levels=limits,
        where={float(tokens): say("answer.at", tokens=f"{tokens:,}") for tokens in CONTEXTS},
    )


def _usable(room: Room) -> float:
    return room.memory * room.usable
