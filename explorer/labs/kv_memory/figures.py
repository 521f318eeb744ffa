"""Pictures of the calculator: bytes against context, sessions that fit, and the bill of a batch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from explorer.labs.charts import number_text
from explorer.labs.kv_memory.capacity import Room
from explorer.labs.kv_memory.variants import Kind
from explorer.pages.theme import Palette
from explorer.say import words_beside

say = words_beside(__file__)

CONTEXTS = tuple(2**power for power in range(7, 21))  # 128 to 1,048,576 tokens
BATCHES = tuple(2**power for power in range(11))  # 1 to 1,024 sequences
LINES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")


def bytes_by_context(
    kinds: Sequence[Kind], kv_bytes_each: float, context: int, limits: Mapping[str, float], colours: Palette
) -> go.Figure:
    """Bytes of one sequence's cache against its length, for each way to keep it; `limits` are drawn across."""
    figure = go.Figure(layout={"title": say("figures.length_title")})
    for kind, dash in zip(kinds, LINES, strict=False):
        sizes = [kind.shape.kv_bytes(tokens, kv_bytes_each) for tokens in CONTEXTS]
        figure.add_scatter(
            x=CONTEXTS,
            y=sizes,
            name=kind.name,
            mode="lines",
            line={"dash": dash, "width": 4 if kind.is_own else 2},
            customdata=[number_text(size, "B") for size in sizes],
            hovertemplate=say(
                "figures.length_hover", formula=kind.formula, kv_bytes_each=f"{kv_bytes_each:g}", name=kind.name
            ),
        )
    _mark(figure, context, kinds[0].shape.kv_bytes(context, kv_bytes_each))
    _limits(figure, limits, colours)
    return figure.update_layout(
        xaxis={"type": "log", "title": say("figures.context")},
        yaxis={"type": "log", "title": say("figures.cache_bytes")},
    )


def sessions_by_context(rooms: Mapping[str, Room], chosen: str, context: int) -> go.Figure:
    """Sequences that fit against their length, for each precision of the cache."""
    figure = go.Figure(layout={"title": say("figures.fit_title")})
    for (name, room), dash in zip(rooms.items(), LINES, strict=False):
        fit = [room.sessions(tokens) for tokens in CONTEXTS]
        figure.add_scatter(
            x=CONTEXTS,
            y=[count or None for count in fit],
            name=say("figures.cache_in", name=name),
            mode="lines+markers",
            line={"dash": dash, "width": 4 if name == chosen else 2},
            customdata=[[number_text(room.for_caches, "B"), number_text(room.sequence(n), "B")] for n in CONTEXTS],
            hovertemplate=say("figures.fit_hover", name=name),
        )
    _mark(figure, context, rooms[chosen].sessions(context) or None)
    return figure.update_layout(
        xaxis={"type": "log", "title": say("figures.context")}, yaxis={"type": "log", "title": say("figures.sessions")}
    )


def memory_by_batch(room: Room, contexts: Sequence[int], colours: Palette) -> go.Figure:
    """Weights and caches together against the number of sequences, for a few lengths."""
    figure = go.Figure(layout={"title": say("figures.batch_title")})
    for tokens, dash in zip(contexts, LINES, strict=False):
        each = room.sequence(tokens)
        sizes = [room.weights + batch * each for batch in BATCHES]
        figure.add_scatter(
            x=BATCHES,
            y=sizes,
            name=say("figures.tokens_each", tokens=f"{tokens:,}"),
            mode="lines+markers",
            line={"dash": dash},
            customdata=[number_text(size, "B") for size in sizes],
            hovertemplate=say(
                "figures.batch_hover",
                weights=number_text(room.weights, "B"),
                each=number_text(each, "B"),
                tokens=f"{tokens:,}",
            ),
        )
    _limits(
        figure, {say("figures.usable"): room.memory * room.usable, say("figures.weights_alone"): room.weights}, colours
    )
    return figure.update_layout(
        xaxis={"type": "log", "title": say("figures.sequences")},
        yaxis={"type": "log", "title": say("figures.memory_bytes")},
    )


def _mark(figure: go.Figure, x: float, y: float | None) -> None:
    """Where the controls stand."""
    if y:
        figure.add_scatter(
            x=[x],
            y=[y],
            mode="markers",
            marker={"size": 13, "symbol": "circle-open", "line": {"width": 3}},
            name="chosen",
            hoverinfo="skip",
        )


def _limits(figure: go.Figure, limits: Mapping[str, float], colours: Palette) -> None:
    """Lines across a logarithmic axis; an annotation there wants the logarithm."""
    for words, size in limits.items():
        if size > 0:
            figure.add_hline(y=size, line={"color": colours.bad, "dash": "dash", "width": 1.5})
            figure.add_annotation(
                x=0.01,
                xref="paper",
                xanchor="left",
                y=math.log10(size),
                yanchor="bottom",
                showarrow=False,
                text=say("figures.line", words=words, size=number_text(size, "B")),
                font={"color": colours.bad, "size": 13},
            )
