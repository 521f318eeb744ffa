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
from explorer.say import words_beside

if TYPE_CHECKING:
    from engine.studies.chunk_sizes import ChunkStudy
    from engine.studies.prefill_and_decode import PhaseTimes

say = words_beside(__file__)

_WAITS = {"memory": say("words.memory_bound"), "compute": say("words.compute_bound")}


def two_requests(times: Sequence[PhaseTimes]) -> str:
    """The pair, told by its two totals and by what one token of either phase took."""
    long, short = times
    totals = [t.prefill_ms + t.decode_ms for t in times]
    run = long.prompt_len + long.new_tokens - 1
    told = say(
        "words.race",
        run=f"{run:,}",
        one=label(long.prompt_len, long.new_tokens),
        one_time=number_text(totals[0] / 1e3, "s"),
        other=label(short.prompt_len, short.new_tokens),
        other_time=number_text(totals[1] / 1e3, "s"),
    )
    if totals[0] and long.is_whole and short.is_whole:
        told += say("words.times", totals=f"{totals[1] / totals[0]:,.1f}")
    else:
        told += say("words.stopped")
    if long.prefill_per_s and short.decode_per_s:
        told += say(
            "words.each",
            prefill_per_s=f"{1e3 / long.prefill_per_s:,.2f}",
            decode_per_s=f"{1e3 / short.decode_per_s:,.2f}",
        )
    return told


def pieces(study: ChunkStudy) -> str:
    """One sweep against one token at a time, and how far the caches differ."""
    done = [run for run in study.runs if run.rounds_ms]
    whole, smallest = done[0], done[-1]
    if whole is smallest:
        return say("words.one_pass", prompt_len=f"{study.prompt_len:,}", best_ms=f"{whole.best_ms:,.1f}")
    best = min(done, key=lambda run: run.best_ms)
    worst = max(done, key=lambda run: run.kv_difference)
    logits = max(run.logit_difference for run in done)
    return say(
        "words.pieces",
        prompt=f"{study.prompt_len:,}",
        whole_ms=f"{whole.best_ms:,.1f}",
        smallest=f"{smallest.chunk:,}",
        smallest_ms=f"{smallest.best_ms:,.1f}",
        times=f"{smallest.best_ms / whole.best_ms:,.1f}",
        quickest=f"{best.chunk:,}",
        largest=f"{study.kv_largest:.3g}",
        difference=f"{worst.kv_difference:.1e}",
        worst=f"{worst.chunk:,}",
        logits=f"{logits:.1e}",
    )


def regime(request: Request, sizes: Sizes, rates: Rates) -> str:
    """What either phase waits for, and from which prompt length on that changes."""
    turns = turning_prompt(sizes, rates)
    rule = critical_batch(rates.peak, rates.bandwidth, sizes.weight_bytes)
    told = say(
        "words.ridge",
        name=rates.name,
        ridge=plain(rates.ridge),
        prefill=_phase(request.prefill, rates),
        decode=_phase(request.decode, rates),
    )
    if math.isinf(turns):
        return told + say("words.never")
    return told + (say("words.from", turns=f"{turns:,.0f}", rule=f"{rule:,.0f}"))


def _phase(phase: Phase, rates: Rates) -> str:
    if not phase.forwards:
        return say("words.no_decode")
    return say(
        "words.phase",
        name=phase.name.capitalize(),
        intensity=plain(phase.intensity),
        waits=_WAITS[phase.bound(rates)],
        rates=number_text(phase.least_s(rates), "s"),
        tokens=plain(phase.tokens / phase.least_s(rates)),
    )


def fit(sizes: Sizes, memory: float, devices: int) -> str:
    """Whether the weights fit; empty where the memory is not stated."""
    weights = sizes.shape.parameters.total * sizes.weight_bytes
    if not memory or weights <= memory * devices:
        return ""
    need = math.ceil(weights / memory)
    return say(
        "words.weights",
        weights=number_text(weights, "B"),
        devices=f"{devices:,}",
        memory=number_text(memory * devices, "B"),
        need=f"{need:,}",
    )
