"""What the two phases showed, in sentences. Every number in them was measured or follows by formula."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.costs.step_time import critical_batch
from explorer.labs.charts import number_text
from explorer.labs.prefill_decode.figures import label
from explorer.labs.prefill_decode.priced import Phase, Rates, Request, Sizes, turning_prompt
from explorer.labs.prefill_decode.table import plain

if TYPE_CHECKING:
    from engine.studies.chunk_sizes import ChunkStudy
    from engine.studies.prefill_and_decode import PhaseTimes

_WAITS = {"memory": "is memory-bound", "compute": "is compute-bound"}


def two_requests(times: Sequence[PhaseTimes]) -> str:
    """The pair, told by its two totals and by what one token of either phase took."""
    long, short = times
    totals = [t.prefill_ms + t.decode_ms for t in times]
    run = long.prompt_len + long.new_tokens - 1
    told = (
        f"As many tokens go through the model in both, {run:,}. {label(long.prompt_len, long.new_tokens)} took "
        f"{number_text(totals[0] / 1e3, 's')}, {label(short.prompt_len, short.new_tokens)} took "
        f"{number_text(totals[1] / 1e3, 's')}"
    )
    if totals[0] and long.is_whole and short.is_whole:
        told += f": {totals[1] / totals[0]:,.1f} times as long."
    else:
        told += " until it was stopped."
    if long.prefill_per_s and short.decode_per_s:
        told += (
            f" A token of the long prompt cost {1e3 / long.prefill_per_s:,.2f} ms, "
            f"one of the long answer {1e3 / short.decode_per_s:,.2f} ms."
        )
    return told


def pieces(study: ChunkStudy) -> str:
    """One sweep against one token at a time, and how far the caches differ."""
    done = [run for run in study.runs if run.rounds_ms]
    whole, smallest = done[0], done[-1]
    if whole is smallest:
        return f"One pass over {study.prompt_len:,} tokens took {whole.best_ms:,.1f} ms."
    best = min(done, key=lambda run: run.best_ms)
    worst = max(done, key=lambda run: run.kv_difference)
    logits = max(run.logit_difference for run in done)
    return (
        f"One pass over {study.prompt_len:,} tokens took {whole.best_ms:,.1f} ms, {smallest.chunk:,} at a time "
        f"{smallest.best_ms:,.1f} ms: {smallest.best_ms / whole.best_ms:,.1f} times as long. The quickest were pieces "
        f"of {best.chunk:,}. The cache ends up the same to rounding, not bit for bit: its numbers reach "
        f"{study.kv_largest:.3g} and differ by {worst.kv_difference:.1e} at most (pieces of {worst.chunk:,}), "
        f"the last row's logits by {logits:.1e}."
    )


def regime(request: Request, sizes: Sizes, rates: Rates) -> str:
    """What either phase waits for, and from which prompt length on that changes."""
    turns = turning_prompt(sizes, rates)
    rule = critical_batch(rates.peak, rates.bandwidth, sizes.weight_bytes)
    told = (
        f"The ridge of {rates.name} is {plain(rates.ridge)} FLOP per byte. "
        f"{_phase(request.prefill, rates)} {_phase(request.decode, rates)} "
    )
    if math.isinf(turns):
        return told + "No prompt is long enough to make prefill compute-bound."
    return told + (
        f"Prefill is compute-bound from {turns:,.0f} prompt tokens on; by the rule for linear layers alone, "
        f"peak times bytes per weight over twice the bandwidth, from {rule:,.0f}."
    )


def _phase(phase: Phase, rates: Rates) -> str:
    if not phase.forwards:
        return "There is nothing to decode: the one new token comes from the prefill."
    return (
        f"{phase.name.capitalize()} does {plain(phase.intensity)} FLOP per byte and {_WAITS[phase.bound(rates)]}: "
        f"{number_text(phase.least_s(rates), 's')} at least, {plain(phase.tokens / phase.least_s(rates))} tokens"
        " per second at most."
    )


def fit(sizes: Sizes, memory: float, devices: int) -> str:
    """Whether the weights fit; empty where the memory is not stated."""
    weights = sizes.shape.parameters.total * sizes.weight_bytes
    if not memory or weights <= memory * devices:
        return ""
    need = math.ceil(weights / memory)
    return (
        f"The weights take {number_text(weights, 'B')}; {devices:,} of these hold "
        f"{number_text(memory * devices, 'B')}. It takes {need:,} at least: the times below are what this many "
        "would need if they could hold them."
    )
