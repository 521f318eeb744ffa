"""What the two phases showed, in sentences. Every number in them was measured or follows by formula."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from engine.costs.step_time import critical_batch
from explorer.labs.charts import number_text
from explorer.labs.prefill_decode.priced import Phase, Rates, Request, Sizes, turning_prompt
from explorer.labs.prefill_decode.table import plain
from explorer.say import words_beside

if TYPE_CHECKING:
    from engine.studies.chunk_sizes import ChunkStudy

say = words_beside(__file__)


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
    sentences = (
        say("words.ridge", name=rates.name, ridge=plain(rates.ridge)),
        _phase(request.prefill, rates),
        _phase(request.decode, rates),
        say("words.never") if math.isinf(turns) else say("words.from", turns=f"{turns:,.0f}", rule=f"{rule:,.0f}"),
    )
    return " ".join(sentences)


def _phase(phase: Phase, rates: Rates) -> str:
    if not phase.forwards:
        return say("words.no_decode")
    return say(
        f"phase.{phase.bound(rates)}",
        name=phase.name.capitalize(),
        intensity=plain(phase.intensity),
        least=number_text(phase.least_s(rates), "s"),
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
        memory=number_text(memory * devices, "B"),
        need=f"{need:,}",
    )
