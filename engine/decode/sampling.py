"""From scores to one token: every stage of sampling, kept apart so that each can be shown.

The stages are transformers' own processor classes, run one by one in the order `generate` uses: repetition
penalty, temperature, top-k, top-p, min-p. Other libraries order them differently and then keep different tokens.
A neutral setting has no stage. At temperature 0 only the penalty acts, then the likeliest token is taken.

Everything happens on the CPU in float32, whatever the model computes in; no input is ever changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers.generation.logits_process import (
    LogitsProcessor,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from engine.config import SamplingParams
from engine.decode.distribution import Distribution, candidates_of, distribution, stage_summary
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
from engine.decode.uniform import uniform
from engine.errors import NumericalFailure
from engine.records import Candidates, Draw, DrawMode, PenalisedEnd, Stage, StageProbability, TokenStanding

__all__ = ["Sampled", "draw_token", "penalised_ends", "run_stages", "sample", "standings_of", "summarise", "uniform"]

StageScores = tuple[str, str, Tensor]  # name, label, scores (V,)
_FLOAT32 = torch.finfo(torch.float32)


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
    stages = run_stages(logits, context_ids, params)
    spread = [distribution(scores.numpy()) for _, _, scores in stages]
    raw, final = spread[0], spread[-1]
    if forced is not None:
        require_token(forced, logits.numel())
    mode, u, drawn = _take(final, stages[-1][2], params, seed, step, generator)
    candidates, summary = _summaries(stages, spread, context_ids)
    return Sampled(candidates, summary, describe_draw(mode, u, drawn, final, raw, forced=forced))


def summarise(
    logits: Tensor, context_ids: Sequence[int], params: SamplingParams
) -> tuple[Candidates, tuple[Stage, ...]]:
    """What other settings would make of the same scores; nothing is drawn."""
    stages = run_stages(logits, context_ids, params)
    return _summaries(stages, [distribution(scores.numpy()) for _, _, scores in stages], context_ids)


def standings_of(
    token_ids: Sequence[int], logits: Tensor, context_ids: Sequence[int], params: SamplingParams
) -> tuple[TokenStanding, ...]:
    """Where tokens stand among all: their rank, and their probability after each stage."""
    for token_id in token_ids:
        require_token(token_id, logits.numel())
    stages = [
        (name, label, distribution(scores.numpy())) for name, label, scores in run_stages(logits, context_ids, params)
    ]
    raw = stages[0][2]
    return tuple(
        TokenStanding(
            token_id=token_id,
            rank=rank_of(raw, token_id),
            logit=float(logits[token_id]),
            stages=tuple(StageProbability(name, label, after.prob_of(token_id)) for name, label, after in stages),
            removed_by=next((label for _, label, after in stages if not after.has(token_id)), None),
        )
        for token_id in token_ids
    )


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
    prompt = {*prompt_ids}
    found = [token_id for token_id in end_ids if token_id in prompt or token_id in generated_ids]
    before = logits[found].detach().to("cpu", torch.float32)  # (E,)
    penalty = RepetitionPenaltyLogitsProcessor(_float32(params.repetition_penalty))
    after = penalty(torch.arange(len(found))[None], before[None].clone())[0]
    return tuple(
        PenalisedEnd(token_id, float(old), float(new), token_id in prompt)
        for token_id, old, new in zip(found, before, after, strict=True)
    )


def run_stages(logits: Tensor, context_ids: Sequence[int], params: SamplingParams) -> list[StageScores]:
    """The raw logits and the scores after each active stage, all (V,) float32 on the CPU; -inf marks a cut token."""
    scores = logits.detach().to("cpu", torch.float32)[None]  # (1, V), the shape the processors want
    _require_numbers(scores)
    stages = [("logits", "raw probability", scores[0])]
    seen = torch.tensor([context_ids] if params.repetition_penalty != 1 else [[]], dtype=torch.long)  # (1, T)
    for name, label, processor in _processors(params):
        scores = _apply(processor, seen, scores)
        stages.append((name, label, scores[0]))
    return stages


def _take(
    final: Distribution, scores: Tensor, params: SamplingParams, seed: int, step: int, generator: torch.Generator | None
) -> tuple[DrawMode, float | None, Interval]:
    if params.is_greedy:
        return "greedy", None, whole_interval(final)
    if generator is not None:
        return "multinomial", None, interval_of(final, multinomial(scores, generator))
    u = uniform(seed, step)
    return "inverse_cdf", u, interval_at(final, u)


def _summaries(
    stages: Sequence[StageScores], spread: Sequence[Distribution], context_ids: Sequence[int]
) -> tuple[Candidates, tuple[Stage, ...]]:
    candidates = candidates_of(stages[0][2].numpy(), spread[0], context_ids)
    befores = [spread[0], *spread]  # the raw logits come after nothing and remove nothing
    return candidates, tuple(
        stage_summary(name, label, after, before, candidates.ids)
        for (name, label, _), after, before in zip(stages, spread, befores, strict=False)
    )


def _require_numbers(scores: Tensor) -> None:
    """One maximum tells the usual case from every bad one: NaN wins it, so does +inf, and all -inf leaves -inf."""
    if torch.isfinite(scores.amax()):
        return
    bad = int(scores.isnan().sum())
    what = f"NaN for {bad:,} of {scores.numel():,} scores" if bad else "no finite score"
    if not bad and scores.amax() > 0:
        what = f"+infinity for {int(scores.isposinf().sum()):,} of {scores.numel():,} scores"
    raise NumericalFailure(
        f"The model returned {what}, so no token can be drawn. "
        "Rewind to an earlier step, or load the model in float32 if it runs in 16 bits."
    )


def _processors(params: SamplingParams) -> list[tuple[str, str, LogitsProcessor]]:
    """The active ones in order. The classes take true floats only, and those must not round to 0 in float32."""
    found: list[tuple[str, str, LogitsProcessor]] = []
    if params.repetition_penalty != 1:
        penalty = RepetitionPenaltyLogitsProcessor(_float32(params.repetition_penalty))
        found.append(("repetition_penalty", f"repetition penalty {_short(params.repetition_penalty)}", penalty))
    if params.is_greedy:
        return [*found, ("greedy", "temperature 0: greedy", _Greedy())]
    if params.temperature != 1:
        temperature = TemperatureLogitsWarper(_float32(params.temperature))
        found.append(("temperature", f"temperature {_short(params.temperature)}", temperature))
    if params.top_k > 0:
        found.append(("top_k", f"top-k {params.top_k}", TopKLogitsWarper(params.top_k)))
    if params.top_p < 1:
        found.append(("top_p", f"top-p {_short(params.top_p)}", TopPLogitsWarper(float(params.top_p))))
    if params.min_p > 0:
        found.append(("min_p", f"min-p {_short(params.min_p)}", MinPLogitsWarper(float(params.min_p))))
    return found


class _Greedy(LogitsProcessor):
    """Leaves the likeliest token alone and cuts all others; the lowest id wins a tie."""

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        best = scores.argmax(dim=-1, keepdim=True)  # (1, 1)
        return torch.full_like(scores, -torch.inf).scatter(1, best, scores.gather(1, best))


def _apply(processor: LogitsProcessor, seen: Tensor, scores: Tensor) -> Tensor:
    """Run one processor; the two that rescale may leave float32's range, which must neither cut nor tie tokens."""
    shifted = scores
    if isinstance(processor, TemperatureLogitsWarper) and abs(scores.amax()) > _FLOAT32.max * processor.temperature:
        shifted = scores - scores.amax()  # softmax does not see a shift, and 0 divided by anything is in range
    after: Tensor = processor(seen, shifted)
    rescales = isinstance(processor, (RepetitionPenaltyLogitsProcessor, TemperatureLogitsWarper))
    if not rescales or (torch.isfinite(after.amin()) and torch.isfinite(after.amax())):
        return after
    return torch.where(scores.isneginf(), scores, after.clamp(_FLOAT32.min, _FLOAT32.max))


def _float32(value: float) -> float:
    return min(max(float(value), _FLOAT32.tiny), _FLOAT32.max)


def _short(value: float) -> str:
    return f"{value:.6g}"
