"""Charts of the two phases: whole requests, prompts of every length, and pieces of every size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import plotly.graph_objects as go

from explorer.labs.prefill_decode.priced import Phase, Rates, Request, Sizes, sweep_of, turning_prompt
from explorer.say import words_beside

if TYPE_CHECKING:
    from engine.studies.chunk_sizes import ChunkStudy
    from engine.studies.prefill_and_decode import PhaseTimes

say = words_beside(__file__)

MARK = "#8b96a8"  # seen on a light and on a dark ground
_BOUND_WORDS = {"memory": "memory-bound", "compute": "compute-bound"}


def label(prompt_len: int, new_tokens: int) -> str:
    """A request as the axis names it."""
    return say("figures.request", prompt_len=f"{prompt_len:,}", new_tokens=f"{new_tokens:,}")


def measured(times: Sequence[PhaseTimes], priced: Sequence[Request]) -> go.Figure:
    """Where each request's time went: one bar a request, prefill and decode one after the other.

    priced  what each costs by formula; empty for an architecture of which only the cache is known
    """
    figure = go.Figure(layout={"title": say("figures.measured_title"), "barmode": "stack"})
    names = [label(t.prompt_len, t.new_tokens) for t in times]
    for phase, values, rates in (
        ("prefill", [t.prefill_ms / 1e3 for t in times], [t.prefill_per_s for t in times]),
        ("decode", [t.decode_ms / 1e3 for t in times], [t.decode_per_s for t in times]),
    ):
        phases = [request.prefill if phase == "prefill" else request.decode for request in priced]
        prices = [(p.flops, p.moved, p.intensity) for p in phases]
        figure.add_bar(
            y=names,
            x=values,
            name=phase,
            orientation="h",
            customdata=[[rate, *(prices[i] if priced else ())] for i, rate in enumerate(rates)],
            hovertemplate=say("figures.measured_hover", phase=phase)
            if priced
            else say("figures.timed_hover", phase=phase),
        )
    return _requests(figure, "seconds")


def computed(requests: Sequence[Request], rates: Rates) -> go.Figure:
    """The same by formula on any machine: the time each phase takes at least."""
    figure = go.Figure(layout={"title": say("figures.least_title", name=rates.name), "barmode": "stack"})
    names = [label(r.prompt_len, r.new_tokens) for r in requests]
    for place, phase in enumerate(("prefill", "decode")):
        phases = [request.phases[place] for request in requests]
        figure.add_bar(
            y=names,
            x=[1e3 * p.least_s(rates) for p in phases],
            name=phase,
            orientation="h",
            customdata=[_inputs(p, rates) for p in phases],
            hovertemplate=say("figures.least_hover", phase=phase),
        )
    return _requests(figure, say("figures.least_ms"))


def _inputs(phase: Phase, rates: Rates) -> list[object]:
    return [
        1e3 * phase.compute_s(rates),
        1e3 * phase.memory_s(rates),
        _BOUND_WORDS[phase.bound(rates)],
        phase.flops,
        phase.moved,
        phase.intensity,
    ]


def _requests(figure: go.Figure, unit: str) -> go.Figure:
    figure.update_xaxes(title=unit)
    figure.update_yaxes(title=say("figures.request_axis"), type="category", autorange="reversed")
    figure.update_layout(height=300, legend_traceorder="normal")
    return figure


def steps(times: Sequence[PhaseTimes]) -> go.Figure:
    """Every turn of decode against the tokens it found in the cache."""
    figure = go.Figure(layout={"title": say("figures.decode_title")})
    for t in times:
        figure.add_scatter(
            x=list(range(t.prompt_len, t.prompt_len + len(t.steps_ms))),
            y=list(t.steps_ms),
            mode="lines",
            name=label(t.prompt_len, t.new_tokens),
            hovertemplate=say.unfilled("figures.decode_hover"),
        )
    figure.update_xaxes(title=say("figures.cached_axis"))
    figure.update_yaxes(title="milliseconds", rangemode="tozero")
    return figure


def prompt_lengths(sizes: Sizes, rates: Rates, prompt_len: int) -> list[int]:
    """Powers of two that reach past this prompt and past the turning point, where there is one in sight."""
    turns = turning_prompt(sizes, rates)
    reach = max(prompt_len, 4 * turns if turns < 1 << 20 else 0, 1024)
    return [2**k for k in range(int(reach).bit_length() + 1)]


def prompts(sizes: Sizes, rates: Rates, prompt_len: int) -> go.Figure:
    """The least time of one sweep against the prompt's length: flat while the weights are awaited, then rising."""
    turns = turning_prompt(sizes, rates)
    lengths = prompt_lengths(sizes, rates, prompt_len)
    sweeps = [sweep_of(sizes, n) for n in lengths]
    figure = go.Figure(layout={"title": say("figures.turn_title", name=rates.name)})
    for name, values, rule in (
        ("memory", [1e3 * s.moved / rates.bandwidth for s in sweeps], say("figures.memory_formula")),
        ("arithmetic", [1e3 * s.flops / rates.peak for s in sweeps], say("figures.arithmetic_formula")),
        ("at least", [1e3 * s.least_s(rates) for s in sweeps], say("figures.longer")),
    ):
        figure.add_scatter(
            x=lengths,
            y=values,
            name=name,
            mode="lines",
            line={"dash": "solid" if name == "at least" else "dot", "width": 3 if name == "at least" else 2},
            hovertemplate=say("figures.turn_hover", rule=rule, name=name),
        )
    if math.isfinite(turns):
        figure.add_vline(x=turns, line={"dash": "dot", "width": 2, "color": MARK})
        figure.add_annotation(
            x=math.log10(turns),
            y=1,
            yref="paper",
            xanchor="right",
            yanchor="top",
            showarrow=False,
            xshift=-6,
            text=say("figures.turn", turns=f"{turns:,.0f}"),
        )
    figure.update_xaxes(title=say("figures.prompt_axis"), type="log")
    figure.update_yaxes(title=say("figures.least_axis"), type="log")
    return figure


def chunk_totals(study: ChunkStudy) -> go.Figure:
    """The whole prompt's time against the number of tokens fed at once."""
    done = [run for run in study.runs if run.rounds_ms]
    figure = go.Figure(layout={"title": say("figures.pieces_title", prompt_len=f"{study.prompt_len:,}")})
    figure.add_scatter(
        x=[run.chunk for run in done],
        y=[run.best_ms for run in done],
        mode="lines+markers",
        name=say("figures.best_round"),
        customdata=[[run.forwards, max(run.rounds_ms)] for run in done],
        hovertemplate=say.unfilled("figures.pieces_hover"),
    )
    return _chunk_axes(figure, say("figures.pieces_axis"), log=False)


def chunk_forwards(study: ChunkStudy, sizes: Sizes | None, rates: Rates | None) -> go.Figure:
    """One forward's time against the tokens in it, beside the bounds of this machine where they were measured."""
    done = [run for run in study.runs if run.rounds_ms]
    figure = go.Figure(layout={"title": say("figures.pass_title")})
    figure.add_scatter(
        x=[run.chunk for run in done],
        y=[run.per_forward_ms for run in done],
        mode="lines+markers",
        name=say("figures.pass_mean"),
        hovertemplate=say.unfilled("figures.pass_hover"),
    )
    if sizes is not None and rates is not None:
        sweeps = [sweep_of(sizes, run.chunk) for run in done]
        for name, values in (
            (say("figures.memory_least"), [1e3 * s.moved / rates.bandwidth for s in sweeps]),
            (say("figures.arithmetic_least"), [1e3 * s.flops / rates.peak for s in sweeps]),
        ):
            figure.add_scatter(
                x=[run.chunk for run in done],
                y=values,
                name=name,
                mode="lines",
                line={"dash": "dot"},
                hovertemplate=say("figures.least_line_hover", source=rates.source, name=name),
            )
    return _chunk_axes(figure, say("figures.pass_axis"), log=True)


def _chunk_axes(figure: go.Figure, unit: str, *, log: bool) -> go.Figure:
    figure.update_xaxes(title=say("figures.tokens_axis"), type="log", dtick=math.log10(2))
    if log:
        figure.update_yaxes(title=unit, type="log", dtick="D2")  # 1, 2 and 5 of each power
    else:
        figure.update_yaxes(title=unit, rangemode="tozero")
    return figure
