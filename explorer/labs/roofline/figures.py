"""Figures of this lab: values to Plotly, nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import plotly.graph_objects as go

from explorer.labs.charts import number_text
from explorer.labs.roofline.curves import BatchCurve
from explorer.labs.roofline.levers import Bar
from explorer.labs.roofline.lower_bounds import Levers, Rates
from explorer.labs.roofline.points import Point
from explorer.labs.roofline.two_precisions import Pair
from explorer.pages.theme import Palette
from explorer.say import words_beside

say = words_beside(__file__)

DECADES = 40  # points of a roof


def roofline(points: Sequence[Point], rates: Rates, levers: Levers, colours: Palette) -> go.Figure:
    """Operations per second against operations per byte, both in powers of ten, under what the machine can do."""
    figure = go.Figure(layout={"title": say("figures.title", name=rates.name)})
    peak = rates.peak(levers.weights)
    spread = [p.intensity for p in points] + ([peak / rates.bandwidth] if peak else [])
    low, high = min(spread, default=1) / 4, max(spread, default=1) * 4
    ratio = (high / low) ** (1 / DECADES)
    xs = [low * ratio**i for i in range(DECADES + 1)]
    if peak and low < peak / rates.bandwidth < high:
        xs = sorted([*xs, peak / rates.bandwidth])
    bandwidth = levers.devices * rates.bandwidth
    roof = [min(levers.devices * peak, x * bandwidth) if peak else x * bandwidth for x in xs]
    how = "measured" if rates.measured else "published"
    figure.add_scatter(
        x=xs,
        y=roof,
        mode="lines",
        name=say("figures.roof", name=rates.name, how=how),
        line={"color": colours.muted, "width": 3},
        hovertemplate=say.unfilled("figures.roof_hover"),
    )
    for phase, colour in (("decode", colours.accent), ("prefill", colours.forced)):
        for was_run in (False, True):
            _add_points(
                figure, [p for p in points if p.phase == phase and p.measured is was_run], phase, colour, was_run
            )
    figure.update_xaxes(type="log", dtick=1, title=say("figures.intensity"))
    figure.update_yaxes(type="log", dtick=1, title=say("figures.rate"), exponentformat="power")
    return figure


def _add_points(figure: go.Figure, points: Sequence[Point], phase: str, colour: str, measured: bool) -> None:
    if not points:
        return
    words = [
        say(
            "figures.point_hover",
            name=p.name,
            flops=number_text(p.flops, "FLOP"),
            moved=number_text(p.moved, "B"),
            intensity=f"{p.intensity:.3g}",
            rate=number_text(p.rate, "FLOP/s"),
            seconds=number_text(p.seconds, "s"),
        )
        for p in points
    ]
    figure.add_scatter(
        x=[p.intensity for p in points],
        y=[p.rate for p in points],
        mode="markers",
        text=words,
        hovertemplate="%{text}<extra></extra>",
        name=say("figures.points", phase=phase, measured="measured" if measured else "computed"),
        marker={
            "color": colour,
            "size": 11,
            "symbol": "circle" if measured else "circle-open",
            "line": {"width": 2, "color": colour},
            "opacity": 0.75 if measured else 1,
        },
    )


def lever_bars(found: Sequence[Bar], what: Literal["time", "rate"], colours: Palette) -> go.Figure:
    """For each lever alone and for those switched on: time per token of one request, or tokens per second of all."""
    title = say("figures.time_title") if what == "time" else say("figures.rate_title")
    values = [bar.floor.token_s * 1e3 if what == "time" else bar.floor.rate for bar in found]
    strong = {say("figures.nothing_moved"): colours.muted, say("figures.all_moved"): colours.accent}
    fills = [strong.get(bar.name, colours.generated if bar.on else colours.card) for bar in found]
    edges = [strong.get(bar.name, colours.generated) for bar in found]
    figure = go.Figure(layout={"title": title, "showlegend": False, "height": 110 + 52 * len(found)})
    figure.add_bar(
        x=values,
        y=[f"<b>{bar.name}</b><br>{_small(bar.said)}" for bar in found],
        orientation="h",
        text=values,
        texttemplate="%{text:.3~g}" if what == "time" else "%{text:.3~s}",
        textposition="outside",
        cliponaxis=False,
        marker={"color": fills, "line": {"color": edges, "width": 2}},
        hovertext=[_hover(bar) for bar in found],
        hovertemplate="%{hovertext}<extra></extra>",
    )
    figure.update_yaxes(autorange="reversed", showgrid=False, ticks="")
    unit = say("figures.ms") if what == "time" else say("figures.rate_short")
    figure.update_xaxes(range=[0, 1.2 * max(values)], title=unit)
    return figure


def _small(words: str) -> str:
    """A line under a bar's name; a long one over two lines."""
    parts = words.split(", ")
    lines = [", ".join(parts[i : i + 3]) for i in range(0, len(parts), 3)]
    return f'<span style="font-size:12px">{"<br>".join(lines)}</span>'


def _hover(bar: Bar) -> str:
    floor = bar.floor
    arithmetic = number_text(floor.compute_s, "s") if floor.compute_s is not None else say("figures.not_published")
    return say(
        "figures.bar_hover",
        name=bar.name,
        said=bar.said,
        streamed=number_text(floor.streamed, "B"),
        cache=number_text(floor.cache, "B"),
        memory_s=number_text(floor.memory_s, "s"),
        arithmetic=arithmetic,
        bound=floor.bound,
    )


def batch_curves(curve: BatchCurve, colours: Palette) -> go.Figure:
    """A step's three bounds against the batch, both in powers of ten."""
    figure = go.Figure(layout={"title": say("figures.batch_title")})
    lines = (
        (say("figures.strict"), curve.strict, colours.accent, "solid"),
        (say("figures.textbook"), curve.general, colours.forced, "dash"),
        (say("figures.memory"), curve.memory, colours.muted, "dot"),
        (say("figures.arithmetic"), curve.arithmetic, colours.bad, "dot"),
    )
    for name, values, colour, dash in lines:
        if values:
            figure.add_scatter(
                x=curve.batches,
                y=[value * 1e3 for value in values],
                name=name,
                mode="lines",
                line={"color": colour, "dash": dash, "width": 3},
                hovertemplate=say("figures.batch_hover", name=name),
            )
    if curve.critical is not None and curve.batches[0] <= curve.critical <= curve.batches[-1]:
        low, high = min(curve.memory) * 1e3, max(curve.general) * 1e3
        turn = say("figures.turn", critical=f"{curve.critical:,.0f}")
        figure.add_scatter(
            x=[curve.critical] * 2,
            y=[low, high],
            mode="lines",
            name=turn,
            hoverinfo="name",
            line={"color": colours.muted, "dash": "dash", "width": 1},
        )
    figure.update_xaxes(type="log", dtick=1, title=say("figures.sequences"))
    figure.update_yaxes(type="log", dtick=1, title=say("figures.step_ms"), exponentformat="none")
    return figure


def precision_steps(pair: Pair, colours: Palette) -> go.Figure:
    """Milliseconds of each step in both formats, and the floor of each."""
    figure = go.Figure(layout={"title": say("figures.precisions_title")})
    for run, colour in zip(pair.runs, (colours.accent, colours.forced), strict=True):
        steps = list(range(1, len(run.forward_ms) + 1))
        figure.add_scatter(
            x=steps,
            y=run.forward_ms,
            mode="lines+markers",
            name=say("figures.measured", dtype=run.dtype),
            line={"color": colour},
            hovertemplate=say.unfilled("figures.step_hover") + run.dtype + "</extra>",
        )
        figure.add_scatter(
            x=steps,
            y=[run.floor_ms] * len(steps),
            mode="lines",
            name=say("figures.bound", dtype=run.dtype),
            line={"color": colour, "dash": "dash"},
            hovertemplate=say.unfilled("figures.bound_hover") + run.dtype + "</extra>",
        )
    figure.update_xaxes(title="step")
    figure.update_yaxes(title=say("figures.forward_ms"), rangemode="tozero")
    return figure
