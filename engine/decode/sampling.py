"""From scores to one token: every stage of sampling, kept apart so that each can be shown.

Everything happens on the CPU in float32, whatever the model computes in; no input is ever changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.config import SamplingParams
from engine.decode.buffers import reused
from engine.decode.distribution import Distribution, candidates_of, of_row, stage_summary
from engine.decode.draw import (
    Interval,
    describe_draw,
    draw_token,
    interval_at,
    interval_of,
    multinomial,
    rank_of,
    require_token,
    whole_interval,
)
from engine.decode.stages import Spread, penalised, penalty_of, rules_of
from engine.decode.uniform import uniform
from engine.records import Candidates, Draw, DrawMode, PenalisedEnd, Stage, StageProbability, TokenStanding

__all__ = [
    "Sampled",
    "draw_token",
    "penalised_ends",
    "raw_and_final",
    "run_stages",
    "sample",
    "standings_of",
    "summarise",
    "uniform",
]

StageScores = tuple[str, str, Tensor]  # name, label, scores (V,)


@dataclass(frozen=True, slots=True)
class Sampled:
    """One step's scores, what each stage made of them, and the token taken."""

    candidates: Candidates
    stages: tuple[Stage, ...]
    draw: Draw


def sample(
    logits: Tensor,
    context_ids: Sequence[int],
    params: SamplingParams,
    *,
    seed: int,
    step: int,
    forced: int | None = None,
    generator: torch.Generator | None = None,
) -> Sampled:
    """Draw the next token from logits (V,) after context_ids, the prompt included.

    u comes from (seed, step). A generator draws with torch.multinomial instead, token for token as `generate` does.
    `forced` is what the sequence goes on with; the draw is made and recorded all the same.
    """
    scores, context = _on_cpu(logits), _ids(context_ids, logits.numel())
    with reused():
        stages = _spread(scores, context, params)
        raw, final = stages[0].after, stages[-1].after
        if forced is not None:
            require_token(forced, logits.numel())
        mode, u, drawn = _take(final, params, seed, step, generator)
        candidates, summary = _summaries(scores, stages, context)
        return Sampled(candidates, summary, describe_draw(mode, u, drawn, final, raw, forced=forced))


def summarise(
    logits: Tensor, context_ids: Sequence[int], params: SamplingParams
) -> tuple[Candidates, tuple[Stage, ...]]:
    """What other settings would make of the same scores; nothing is drawn."""
    scores, context = _on_cpu(logits), _ids(context_ids, logits.numel())
    with reused():
        return _summaries(scores, _spread(scores, context, params), context)


def standings_of(
    token_ids: Sequence[int], logits: Tensor, context_ids: Sequence[int], params: SamplingParams
) -> tuple[TokenStanding, ...]:
    """Where tokens stand among all: their rank, and their probability after each stage."""
    for token_id in token_ids:
        require_token(token_id, logits.numel())
    stages = _spread(_on_cpu(logits), _ids(context_ids, logits.numel()), params)
    raw = stages[0].after
    return tuple(
        TokenStanding(
            token_id=token_id,
            rank=rank_of(raw, token_id),
            logit=float(logits[token_id]),
            stages=tuple(StageProbability(name, label, after.prob_of(token_id)) for name, label, after in stages),
            removed_by=next((label for _, label, after in stages if after.place_of(token_id) is None), None),
        )
        for token_id in token_ids
    )


def raw_and_final(
    logits: Tensor, context_ids: Sequence[int], params: SamplingParams
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The raw scores (V,) and those after the last stage; -inf where a token was cut. Both may be the same array."""
    stages = _spread(_on_cpu(logits), _ids(context_ids, logits.numel()), params)
    return stages[0].after.row(), stages[-1].after.row()


def penalised_ends(
    logits: Tensor,
    prompt_ids: Sequence[int],
    generated_ids: Sequence[int],
    params: SamplingParams,
    end_ids: Sequence[int],
) -> tuple[PenalisedEnd, ...]:
    """What the repetition penalty did to the EOS tokens among the ids seen so far."""
    if params.repetition_penalty == 1:
        return ()
    found = [(token_id, token_id in prompt_ids) for token_id in end_ids]
    found = [(token_id, in_prompt) for token_id, in_prompt in found if in_prompt or token_id in generated_ids]
    before = _on_cpu(logits)[[token_id for token_id, _ in found]] if found else np.empty(0, np.float32)  # (E,)
    after = penalised(before, penalty_of(params))
    return tuple(
        PenalisedEnd(token_id, float(old), float(new), in_prompt)
        for (token_id, in_prompt), old, new in zip(found, before, after, strict=True)
    )


def run_stages(logits: Tensor, context_ids: Sequence[int], params: SamplingParams) -> list[StageScores]:
    """The raw logits and the scores after each active stage, all (V,) float32 on the CPU; -inf marks a cut token."""
    stages = _spread(_on_cpu(logits), _ids(context_ids, logits.numel()), params)
    return [(name, label, torch.from_numpy(after.row().copy())) for name, label, after in stages]


def _spread(scores: NDArray[np.float32], context: NDArray[np.int64], params: SamplingParams) -> list[Spread]:
    """The distribution of the raw scores (V,), and after each active stage."""
    stages = [Spread("logits", "raw probability", of_row(scores))]
    for name, label, act in rules_of(params):
        stages.append(Spread(name, label, act(stages[-1].after, context)))
    return stages


def _take(
    final: Distribution, params: SamplingParams, seed: int, step: int, generator: torch.Generator | None
) -> tuple[DrawMode, float | None, Interval]:
    if params.is_greedy:
        return "greedy", None, whole_interval(final)
    if generator is not None:
        drawn = multinomial(torch.from_numpy(final.row()), generator)
        return "multinomial", None, interval_of(final, drawn)
    u = uniform(seed, step)
    return "inverse_cdf", u, interval_at(final, u)


def _summaries(
    scores: NDArray[np.float32], stages: Sequence[Spread], context: NDArray[np.int64]
) -> tuple[Candidates, tuple[Stage, ...]]:
    candidates = candidates_of(scores, stages[0].after, context)
    befores = [stages[0], *stages]  # the raw logits come after nothing and remove nothing
    return candidates, tuple(
        stage_summary(name, label, after, before.after, candidates.ids)
        for (name, label, after), before in zip(stages, befores, strict=False)
    )


def _on_cpu(logits: Tensor) -> NDArray[np.float32]:
    """Scores (V,) as numpy sees them."""
    found: NDArray[np.float32] = logits.detach().to("cpu", torch.float32).numpy()
    return found


def _ids(context_ids: Sequence[int], size: int) -> NDArray[np.int64]:
    """Each id that has a score, once, rising: a model may embed more tokens than it can say."""
    ids = np.array(sorted(set(context_ids)), dtype=np.int64)
    return ids[ids < size]
