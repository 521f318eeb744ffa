"""The numbers of the two phases as tables: what the charts are drawn from, and what is saved as CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING

from explorer.labs.charts import number_text
from explorer.labs.prefill_decode.figures import label, prompt_lengths
from explorer.labs.prefill_decode.priced import Phase, Rates, Request, Sizes, sweep_of
from explorer.say import words_beside

if TYPE_CHECKING:
    from engine.studies.chunk_sizes import ChunkStudy
    from engine.studies.prefill_and_decode import PhaseTimes

say = words_beside(__file__)

Row = dict[str, object]


def measured_rows(times: Sequence[PhaseTimes], priced: Sequence[Request], rates: Rates | None) -> list[Row]:
    """A row per request and phase: what was measured, what was done and moved by formula, and the least time for it."""
    rows: list[Row] = []
    for t, request in zip(times, priced, strict=True):
        for phase, ms, per_s, forwards_ms in (
            (request.prefill, t.prefill_ms, t.prefill_per_s, t.sweeps_ms),
            (request.decode, t.decode_ms, t.decode_per_s, t.steps_ms),
        ):
            rows.append(
                {
                    say("table.request"): label(t.prompt_len, t.new_tokens),
                    say("table.phase"): phase.name,
                    say("table.tokens"): phase.tokens,
                    say("table.forwards"): len(phase.forwards),
                    say("table.ms"): ms,
                    say("table.median_ms"): median(forwards_ms) if forwards_ms else 0.0,
                    say("table.per_second"): per_s,
                    **_price(phase),
                    say("table.flops_reached"): 1e3 * phase.flops / ms if ms else 0.0,
                    say("table.bytes_reached"): 1e3 * phase.moved / ms if ms else 0.0,
                    **_least(phase, ms, rates),
                }
            )
    return rows


def computed_rows(requests: Sequence[Request], rates: Rates) -> list[Row]:
    """A row per request and phase: both bounds, and which one it waits for."""
    return [
        {
            say("table.request"): label(request.prompt_len, request.new_tokens),
            say("table.phase"): phase.name,
            say("table.tokens"): phase.tokens,
            say("table.forwards"): len(phase.forwards),
            **_price(phase),
            say("table.arithmetic_alone_ms"): 1e3 * phase.compute_s(rates),
            say("table.memory_alone_ms"): 1e3 * phase.memory_s(rates),
            say("table.least_ms"): 1e3 * phase.least_s(rates),
            say("table.bound"): _bound(phase, rates),
            say("table.per_second_at_most"): phase.tokens / phase.least_s(rates) if phase.forwards else 0.0,
        }
        for request in requests
        for phase in request.phases
    ]


def timed_rows(times: Sequence[PhaseTimes]) -> list[Row]:
    """The same of a model whose arithmetic is not known: times alone."""
    return [
        {
            say("table.request"): label(t.prompt_len, t.new_tokens),
            say("table.phase"): phase,
            say("table.ms"): ms,
            say("table.per_second"): per_s,
        }
        for t in times
        for phase, ms, per_s in (
            (say("table.prefill"), t.prefill_ms, t.prefill_per_s),
            (say("table.decode"), t.decode_ms, t.decode_per_s),
        )
    ]


def step_rows(times: Sequence[PhaseTimes]) -> list[Row]:
    """A row per turn of decode."""
    return [
        {
            say("table.request"): label(t.prompt_len, t.new_tokens),
            say("table.cached_before"): t.prompt_len + turn,
            say("table.ms"): ms,
        }
        for t in times
        for turn, ms in enumerate(t.steps_ms)
    ]


def prompt_rows(sizes: Sizes, rates: Rates, prompt_len: int) -> list[Row]:
    """A row per prompt length of the chart."""
    rows: list[Row] = []
    for tokens in prompt_lengths(sizes, rates, prompt_len):
        sweep = sweep_of(sizes, tokens)
        rows.append(
            {
                say("table.prompt_tokens"): tokens,
                say("table.flops"): sweep.flops,
                say("table.moved"): sweep.moved,
                say("table.intensity"): sweep.flops / sweep.moved,
                say("table.arithmetic_ms"): 1e3 * sweep.flops / rates.peak,
                say("table.memory_ms"): 1e3 * sweep.moved / rates.bandwidth,
                say("table.least_ms"): 1e3 * sweep.least_s(rates),
            }
        )
    return rows


def shown(rows: Sequence[Row], columns: Mapping[str, str]) -> list[dict[str, str]]:
    """The columns that a page shows at once, each value as the labs write numbers; `columns` are units by name."""
    return [
        {_heading(name): _written(row[name], unit) for name, unit in columns.items() if name in row} for row in rows
    ]


def _heading(name: str) -> str:
    """A time is written with a unit of its own."""
    return say("table.time") if name == say("table.ms") else name.removesuffix(", ms")


def _written(value: object, unit: str) -> str:
    if isinstance(value, str):
        return value
    assert isinstance(value, (int, float)), f"a table holds text and numbers, got {value!r}"
    if unit == say("table.ms"):
        return number_text(value / 1e3, "s")
    return number_text(value, unit) if unit else plain(value)


def plain(value: float) -> str:
    """A bare number: three digits, thousands set apart, no prefix: 0.504, 70,200."""
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:g}"


def _least(phase: Phase, ms: float, rates: Rates | None) -> Row:
    if rates is None or not phase.forwards:
        return {}
    least = 1e3 * phase.least_s(rates)
    return {
        say("table.least_ms"): least,
        say("table.times"): ms / least,
        say("table.bound"): _bound(phase, rates),
    }


def _bound(phase: Phase, rates: Rates) -> str:
    return say("table.compute") if phase.bound(rates) == "compute" else say("table.memory")


def _price(phase: Phase) -> Row:
    return {say("table.flops"): phase.flops, say("table.moved"): phase.moved, say("table.intensity"): phase.intensity}


def chunk_rows(study: ChunkStudy) -> list[Row]:
    """A row per size that was measured."""
    return [
        {
            say("table.at_once"): run.chunk,
            say("table.forwards"): run.forwards,
            say("table.best_ms"): run.best_ms,
            say("table.slowest_ms"): max(run.rounds_ms),
            say("table.ms_per_forward"): run.per_forward_ms,
            say("table.per_second"): 1e3 * study.prompt_len / run.best_ms,
            say("table.kv_difference"): run.kv_difference,
            say("table.logit_difference"): run.logit_difference,
        }
        for run in study.runs
        if run.rounds_ms
    ]
