"""The numbers of the two phases as tables: what the charts are drawn from, and what is saved as CSV."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING

from explorer.labs.prefill_decode.figures import label
from explorer.labs.prefill_decode.priced import Phase, Rates, Request

if TYPE_CHECKING:
    from engine.chunk_sizes import ChunkStudy
    from engine.phases import PhaseTimes

Row = dict[str, object]


def measured_rows(times: Sequence[PhaseTimes], priced: Sequence[Request]) -> list[Row]:
    """A row per request and phase: what was measured, and what the formulas say was done and moved."""
    rows: list[Row] = []
    for t, request in zip(times, priced, strict=True):
        for phase, ms, per_s, forwards_ms in (
            (request.prefill, t.prefill_ms, t.prefill_per_s, t.sweeps_ms),
            (request.decode, t.decode_ms, t.decode_per_s, t.steps_ms),
        ):
            rows.append(
                {
                    "request": label(t.prompt_len, t.new_tokens),
                    "phase": phase.name,
                    "tokens run": phase.tokens,
                    "forwards": len(phase.forwards),
                    "ms": ms,
                    "median forward, ms": median(forwards_ms) if forwards_ms else 0.0,
                    "tokens per second": per_s,
                    **_price(phase),
                    "GFLOP/s reached": phase.flops / ms / 1e6 if ms else 0.0,
                    "GB/s reached": phase.moved / ms / 1e6 if ms else 0.0,
                }
            )
    return rows


def computed_rows(requests: Sequence[Request], rates: Rates) -> list[Row]:
    """A row per request and phase: both bounds, and which one it waits for."""
    return [
        {
            "request": label(request.prompt_len, request.new_tokens),
            "phase": phase.name,
            "tokens run": phase.tokens,
            "forwards": len(phase.forwards),
            **_price(phase),
            "arithmetic alone, ms": 1e3 * phase.compute_s(rates),
            "memory alone, ms": 1e3 * phase.memory_s(rates),
            "at least, ms": 1e3 * phase.least_s(rates),
            "waits for": "arithmetic" if phase.bound(rates) == "compute" else "memory",
            "tokens per second at most": phase.tokens / phase.least_s(rates) if phase.forwards else 0.0,
        }
        for request in requests
        for phase in request.phases
    ]


def _price(phase: Phase) -> Row:
    return {"FLOPs": phase.flops, "bytes moved": phase.moved, "FLOP per byte": phase.intensity}


def chunk_rows(study: ChunkStudy) -> list[Row]:
    """A row per size that was measured."""
    return [
        {
            "tokens at once": run.chunk,
            "forwards": run.forwards,
            "best ms": run.best_ms,
            "slowest ms": max(run.rounds_ms),
            "ms per forward": run.per_forward_ms,
            "tokens per second": 1e3 * study.prompt_len / run.best_ms,
            "largest difference in the cache": run.kv_difference,
            "largest difference of logits": run.logit_difference,
        }
        for run in study.runs
        if run.rounds_ms
    ]
