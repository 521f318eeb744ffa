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

LOOKS: tuple[tuple[Role, Dash], ...] = (("accent", "solid"), ("forced", "dash"), ("gen", "dot"), ("k", "dash"))


def sentence(name: str, room: Room, context: int, place: str) -> Answer:
    """What one token and one sequence take; how many sequences fit in `place`, where the weights are known."""
    about = "≈ " if room.shape.doubts else ""
    names = {"name": name, "place": place, "context": format_count(context)}
    numbers = {
        "token": about + number_text(room.shape.kv_bytes_per_token(room.kv_bytes_each), "B"),
        "sequence": about + number_text(room.shape.kv_bytes(context, room.kv_bytes_each), "B"),
    }
    words = "{name} keeps {token} per token: a conversation of {context} tokens takes {sequence}"
    if not room.knows_weights:
        return Answer(f"{words}.", numbers, names)
    numbers |= {"weights": about + number_text(room.weights, "B"), "usable": number_text(_usable(room), "B")}
    if room.for_caches <= 0:
        words += (
            ". On {place} there is no room for it: the weights alone take {weights}, "
            "more than the {usable} that may be used."
        )
        return Answer(words, numbers, names)
    fit = room.sessions(context)
    if not fit:
        numbers |= {"longest": format_count(room.longest(1))}
        return Answer(
            f"{words}, and not one fits on {{place}} beside the weights. The longest that does has {{longest}} tokens.",
            numbers,
            names,
        )
    numbers |= {"fit": about + format_count(fit)}
    return Answer(f"{words}, and {{fit}} of them fit on {{place}} beside the weights.", numbers, names)


def memory_bar(room: Room, context: int, place: str) -> Bars:
    """The memory, and what is in it: weights, as many caches as fit, and what stays free."""
    weights = Part(f"weights {number_text(room.weights, 'B')}", room.weights, "held once", "prompt")
    fit = room.sessions(context)
    if not fit:
        one = Part("one sequence", room.sequence(context), number_text(room.sequence(context), "B"))
        there = Part("may be used", _usable(room), number_text(_usable(room), "B"), "mute", hollow=True)
        takes = Bar("with one sequence", (weights, one), number_text(room.weights + one.size, "B"), strong=True)
        return Bars("", (takes, Bar(place, (there,), number_text(_usable(room), "B"))))
    caches = fit * room.sequence(context)
    left = room.for_caches - caches
    kept = room.memory - _usable(room)
    parts = (
        weights,
        Part(
            f"{format_count(fit)} {'sequence' if fit == 1 else 'sequences'} {number_text(caches, 'B')}",
            caches,
            f"{format_count(fit)} × {number_text(room.sequence(context), 'B')}",
        ),
        Part(f"left over {number_text(left, 'B')}", left, "too little for one more", "accent", hollow=True),
        Part(f"kept free {number_text(kept, 'B')}", kept, "for activations and the runtime", "mute", hollow=True),
    )
    return Bars("Memory", (Bar(place, parts, number_text(room.memory, "B")),))


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
        (Level(room.for_caches, f"room beside the weights: {number_text(room.for_caches, 'B')}"),)
        if room.knows_weights and room.for_caches > 0
        else ()
    )
    return Plot(
        title="Cache of one sequence, by its length",
        x=log_axis("tokens in the sequence", CONTEXTS[0], CONTEXTS[-1], ticks=CONTEXTS[::2]),
        y=log_axis("", min(map(min, sizes.values())), max(map(max, sizes.values())), "B"),
        lines=lines,
        points=(Point("chosen", context, here, number_text(here, "B"), label=number_text(here, "B")),),
        levels=limits,
        where={float(tokens): f"{tokens:,} tokens" for tokens in CONTEXTS},
    )


def _usable(room: Room) -> float:
    return room.memory * room.usable
