"""Records as the JSON and arrays the browser gets. Pure: the same record gives the same bytes.

A probability that was removed is 0, never missing; a number that JSON cannot say is null. Arrays go into
planes as they are, so nothing is rounded twice: attention in float16, scores in float32.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.config import SamplingParams
from engine.records import (
    SHOWN,
    Candidates,
    Check,
    Draw,
    PenalisedEnd,
    PromptRow,
    Stage,
    StepRecord,
    StopCheck,
    TokenStanding,
)
from engine.tokens import TokenPiece
from explorer.live.frame import Json, Planes, number
from explorer.live.token_payload import piece_json

FULL_ATTENTION_KEYS = 256  # up to here every weight is sent; beyond, the page asks for one layer at a time
THUMB_BINS = 64

JsonObject = dict[str, Json]


def sampling_json(sampling: SamplingParams) -> JsonObject:
    """The settings by name."""
    return {
        "temperature": number(sampling.temperature),
        "top_k": sampling.top_k,
        "top_p": number(sampling.top_p),
        "min_p": number(sampling.min_p),
        "repetition_penalty": number(sampling.repetition_penalty),
    }


def step_json(record: StepRecord, planes: Planes, attention: NDArray[np.float32] | None) -> JsonObject:
    """One record. `attention` is (L, H, K) where it is at hand; without it the browser asks when it is looked at."""
    candidates = candidates_json(record.candidates, record.stages, planes)
    arrays: JsonObject = {
        "kv_norms": planes.add(record.kv_norms, "f4"),
        **candidates.pop("planes"),  # type: ignore[dict-item]
        **(attention_json(attention, planes) if attention is not None else {}),
    }
    return {
        "index": record.index,
        "phase": record.phase,
        "input_ids": list(record.input_ids),
        "positions": list(record.positions),
        "emitted_ids": list(record.emitted_ids),
        "kv_len": record.kv_len,
        "kv_bytes": record.kv_bytes,
        "logit_rows": record.logit_rows,
        "batch_size": record.batch_size,
        "forwards": record.forwards,
        "reused_tokens": record.reused_tokens,
        "rebuilt_tokens": record.rebuilt_tokens,
        "recovered_tokens": record.recovered_tokens,
        "text": record.text,
        "held": record.held,
        "pending": record.pending.hex(),
        "finish_reason": record.finish_reason,
        "forced": record.draw.mode == "forced",
        "sampling": sampling_json(record.sampling),
        "draw": _draw_json(record.draw),
        "stops": [_stop_json(check) for check in record.stops],
        "penalised_ends": [_penalised_json(end) for end in record.penalised_ends],
        "timing_ms": _timing_json(record),
        "memory": asdict(record.memory),
        **candidates,
        "planes": arrays,
    }


def candidates_json(candidates: Candidates, stages: Sequence[Stage], planes: Planes) -> JsonObject:
    """Scores and stages, of a step that ran or of one that is only tried out."""
    probs = np.stack([stage.probs for stage in stages])  # (S, min(SHOWN, V))
    return {
        "stages": [_stage_json(stage) for stage in stages],
        "log_sum_exp": number(candidates.log_sum_exp),
        "tail": {"low": number(candidates.tail_low), "high": number(candidates.tail_high)},
        "planes": {
            "cand_ids": planes.add(candidates.ids, "i4"),
            "cand_logits": planes.add(candidates.logits, "f4"),
            "cand_seen": planes.add(candidates.seen, "u1"),
            "tail_counts": planes.add(candidates.tail_counts, "i4"),
            "stage_probs": planes.add(probs, "f4"),
        },
    }


def attention_json(weights: NDArray[np.float32], planes: Planes) -> JsonObject:
    """Every weight of a short step, or for each head the largest in each of 64 equal stretches of a long one."""
    if weights.shape[-1] <= FULL_ATTENTION_KEYS:
        return {"attention": planes.add(weights, "f2")}
    return {"attention_thumb": planes.add(max_pooled(weights, THUMB_BINS), "u1")}


def max_pooled(weights: NDArray[np.floating[Any]], bins: int) -> NDArray[np.uint8]:
    """(..., K) weights in 0..1 as (..., bins) largest weight times 255. Bin b covers keys from b*K//bins on."""
    num_keys = weights.shape[-1]
    starts = np.arange(bins) * num_keys // bins
    largest: NDArray[np.floating[Any]] = np.maximum.reduceat(weights, starts, axis=-1)  # (..., bins)
    scaled: NDArray[np.uint8] = np.rint(largest * 255).astype(np.uint8)
    return scaled


def named_ids(record: StepRecord) -> set[int]:
    """Every token id the page may have to spell for this record."""
    ids = {*record.input_ids, *record.emitted_ids, record.draw.drawn_id, record.draw.token_id}
    ids.update(end.token_id for end in record.penalised_ends)
    return ids | ids_of_candidates(record.candidates, record.stages)


def ids_of_candidates(candidates: Candidates, stages: Sequence[Stage]) -> set[int]:
    """The ids that bars and stages name."""
    ids: set[int] = set(candidates.ids[:SHOWN].tolist())
    return ids.union(*(stage.top_ids.tolist() for stage in stages))


def prompt_rows_json(rows: Iterable[PromptRow]) -> list[Json]:
    """What the model would have said after each prompt token."""
    return [
        {
            "position": row.position,
            "top": _pairs(row.top_ids, row.top_probs),
            "actual_next_id": row.actual_next_id,
            "actual_next_prob": number(row.actual_next_prob),
        }
        for row in rows
    ]


def standing_json(standing: TokenStanding, piece: TokenPiece) -> JsonObject:
    """One token's place among all, and its way through the stages."""
    return {
        "token_id": standing.token_id,
        "piece": piece_json(piece),
        "rank": standing.rank,
        "logit": number(standing.logit),
        "stages": [{"stage": p.stage, "label": p.label, "prob": number(p.prob)} for p in standing.stages],
        "removed_by": standing.removed_by,
    }


def checks_json(checks: Iterable[Check]) -> list[Json]:
    """The live self-test, comparison by comparison."""
    return [
        {
            "name": check.name,
            "compared": check.compared,
            "passed": bool(check.passed),
            "difference": number(check.difference),
            "tolerance": number(check.tolerance),
            "unit": check.unit,
        }
        for check in checks
    ]


def _pairs(ids: NDArray[np.int32], probs: NDArray[np.float64]) -> list[Json]:
    return [[token_id, number(prob)] for token_id, prob in zip(ids.tolist(), probs.tolist(), strict=True)]


def _stage_json(stage: Stage) -> JsonObject:
    return {
        "name": stage.name,
        "label": stage.label,
        "kept": int(stage.kept),
        "removed_mass": number(stage.removed_mass),
        "entropy_bits": number(stage.entropy_bits),
        "top": _pairs(stage.top_ids, stage.top_probs),
    }


def _draw_json(draw: Draw) -> JsonObject:
    return {
        "mode": draw.mode,
        "u": number(draw.u),
        "drawn_id": int(draw.drawn_id),
        "token_id": int(draw.token_id),
        "low": number(draw.low),
        "high": number(draw.high),
        "raw_prob": number(draw.raw_prob),
        "final_prob": number(draw.final_prob),
        "raw_rank": int(draw.raw_rank),
    }


def _penalised_json(end: PenalisedEnd) -> JsonObject:
    return {
        "token_id": end.token_id,
        "logit": number(end.logit),
        "penalised": number(end.penalised),
        "in_prompt": end.in_prompt,
    }


def _stop_json(check: StopCheck) -> JsonObject:
    return {
        "rule": check.rule,
        "label": check.label,
        "armed": bool(check.armed),
        "fired": bool(check.fired),
        "state": check.state,
        "nearness": number(check.nearness),
    }


def _timing_json(record: StepRecord) -> JsonObject | None:
    timing = record.timing
    if timing is None:  # rebuilt from a recipe: no such forward was timed
        return None
    return {
        "wait": number(timing.wait_ms),
        "forward": number(timing.forward_ms),
        "sample": number(timing.sample_ms),
        "other": number(timing.other_ms),
        "total": number(timing.total_ms),
    }
