"""Pictures of what is held: allocation as strips and as a pool of blocks, and the memory of this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from explorer.labs.charts import number_text
from explorer.labs.kv_memory.allocation import Allocation, block_owners
from explorer.labs.kv_memory.memory import Part
from explorer.pages.theme import Palette
from explorer.say import words_beside

say = words_beside(__file__)

POOL_WIDTH = 32  # blocks in a row
MOST_BLOCKS = 2048  # more would be finer than the screen
NUMBERED_BLOCKS = 512
BREAKS: dict[str, str] = {"reserve to the maximum": say("pictures.maximum"), "power of two": say("pictures.power")}


def strips(allocations: Sequence[Allocation], slot_bytes: float, colours: Palette) -> go.Figure:
    """One strip of memory per policy: what each sequence fills, and pale behind it what it holds empty."""
    figure = go.Figure(layout={"title": say("pictures.title")})
    policies = [allocation.policy for allocation in allocations]
    lengths, hues = allocations[0].lengths, session_colours(colours)
    for one, length in enumerate(lengths):
        hue = hues[one % len(hues)]
        empty = [allocation.slots[one] - length for allocation in allocations]
        for name, slots, opacity in (("filled", [length] * len(allocations), 1.0), ("empty", empty, 0.22)):
            figure.add_bar(
                y=policies,
                x=[count * slot_bytes for count in slots],
                orientation="h",
                name=name,
                marker={"color": hue, "opacity": opacity, "line": {"color": colours.card, "width": 1}},
                customdata=[[count, number_text(count * slot_bytes, "B")] for count in slots],
                hovertemplate=say("pictures.hover", one=one + 1, length=f"{length:,}", name=name),
                showlegend=False,
            )
    for allocation in allocations:
        figure.add_annotation(
            x=allocation.held * slot_bytes,
            y=allocation.policy,
            xanchor="left",
            showarrow=False,
            xshift=8,
            text=f"<b>{allocation.utilisation:.1%}</b>",
        )
    most = max(allocation.held for allocation in allocations) * slot_bytes
    return figure.update_layout(
        barmode="stack",
        height=300,
        yaxis={"autorange": "reversed", "tickvals": policies, "ticktext": [BREAKS.get(one, one) for one in policies]},
        xaxis={"title": say("pictures.bytes"), "range": [0, most * 1.16]},
    )


def pool(lengths: Sequence[int], block: int, colours: Palette) -> go.Figure:
    """The paged pool block by block, in the order they were taken; a last block that is not full is paler."""
    blocks = _blocks(lengths, block)[:MOST_BLOCKS]
    hues = session_colours(colours)
    rows = [blocks[start : start + POOL_WIDTH] for start in range(0, len(blocks), POOL_WIDTH)]
    shades = [[2 * (one.owner % len(hues)) + (one.filled == block) for one in row] for row in rows]
    words = [
        [say("pictures.blocks", owner=one.owner + 1, filled=one.filled, block=block) for one in row] for row in rows
    ]
    numbers = [[str(one.owner + 1) if len(blocks) <= NUMBERED_BLOCKS else "" for one in row] for row in rows]
    figure = go.Figure(layout={"title": say("pictures.pool_title", block=block)})
    figure.add_heatmap(
        z=shades,
        customdata=words,
        hovertemplate="%{customdata}<extra></extra>",
        text=numbers,
        texttemplate="%{text}",
        zmin=0,
        zmax=2 * len(hues) - 1,
        colorscale=_steps(hues, colours.card),
        showscale=False,
        xgap=2,
        ygap=2,
    )
    return figure.update_layout(
        height=110 + 24 * len(rows),
        xaxis={"visible": False},
        yaxis={"visible": False, "autorange": "reversed"},
    )


@dataclass(frozen=True, slots=True)
class _Block:
    owner: int
    filled: int


def _blocks(lengths: Sequence[int], block: int) -> list[_Block]:
    left, found = list(lengths), []
    for owner in block_owners(lengths, block):
        filled = min(block, left[owner])
        left[owner] -= filled
        found.append(_Block(owner, filled))
    return found


def _steps(hues: Sequence[str], ground: str) -> list[tuple[float, str]]:
    """A colour scale of plateaus: of each hue a pale and a full one."""
    shades = [shade for hue in hues for shade in (blend(hue, ground, 0.55), hue)]
    edges = [index / len(shades) for index in range(len(shades) + 1)]
    return [(edge, shade) for shade, low, high in zip(shades, edges, edges[1:], strict=False) for edge in (low, high)]


def blend(colour: str, ground: str, share: float) -> str:
    """`colour` with `share` of `ground` mixed in; all as #rrggbb."""
    pairs = [(int(colour[i : i + 2], 16), int(ground[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)


def session_colours(colours: Palette) -> tuple[str, ...]:
    """Sequences take these in turn."""
    return colours.accent, colours.forced, colours.generated, colours.key, colours.prompt


def memory_parts(parts: Sequence[Part], colours: Palette) -> go.Figure:
    """What this process holds, part by part, in one bar."""
    figure = go.Figure(layout={"title": say("pictures.process_title")})
    hues = [colours.prompt, colours.accent, colours.value, colours.generated, colours.forced, colours.line]
    for part, hue in zip(parts, hues, strict=False):
        figure.add_bar(
            y=[say("pictures.this_process")],
            x=[max(0, part.size)],
            orientation="h",
            name=part.name,
            marker={"color": hue},
            customdata=[[number_text(part.size, "B"), part.why]],
            hovertemplate="<b>%{customdata[0]}</b><br>%{customdata[1]}<extra>%{fullData.name}</extra>",
        )
    return figure.update_layout(
        barmode="stack",
        height=240,
        legend={"traceorder": "normal"},
        xaxis={"title": say("pictures.bytes_axis")},
        yaxis={"showticklabels": False, "ticks": ""},
    )
