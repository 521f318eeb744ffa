"""Our stages against stock transformers' processors, run one after another over whole rows: equal to the last bit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
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

from engine.config import PRESETS, SamplingParams
from engine.decode.sampling import run_stages

VOCAB = 49_152
SETTINGS = {
    "chat defaults": PRESETS["chat defaults"],
    "everything": SamplingParams(temperature=0.8, top_k=40, top_p=0.9, min_p=0.02, repetition_penalty=1.3),
    "top-p of a whole vocabulary": SamplingParams(temperature=1.3, top_p=0.97),
    "many kept": SamplingParams(temperature=1.5, top_k=3_000, top_p=0.999, repetition_penalty=0.7),
    "min-p of a whole vocabulary": SamplingParams(temperature=2.0, min_p=0.001),
    "one kept": SamplingParams(top_k=1, top_p=0.5, min_p=0.5),
}


def processors(params: SamplingParams) -> list[LogitsProcessor]:
    """What `generate` would run, in its order."""
    made: list[LogitsProcessor] = []
    if params.repetition_penalty != 1:
        made.append(RepetitionPenaltyLogitsProcessor(params.repetition_penalty))
    if params.temperature != 1:
        made.append(TemperatureLogitsWarper(params.temperature))
    if params.top_k:
        made.append(TopKLogitsWarper(params.top_k))
    if params.top_p < 1:
        made.append(TopPLogitsWarper(params.top_p))
    if params.min_p:
        made.append(MinPLogitsWarper(params.min_p))
    return made


def assert_equal_to_stock(logits: Tensor, context: Sequence[int], params: SamplingParams) -> None:
    scores, seen = logits[None], torch.tensor([list(context)], dtype=torch.long)
    ours = run_stages(logits, context, params)[1:]
    theirs = processors(params)
    assert len(ours) == len(theirs)
    for (name, _, mine), processor in zip(ours, theirs, strict=True):
        scores = processor(seen, scores)
        assert torch.equal(mine, scores[0]), f"{name}: {int((mine != scores[0]).sum())} scores differ"


def normal(seed: int, size: int = VOCAB, width: float = 3.0) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(2, width, size).astype(np.float32))


@pytest.mark.parametrize("params", SETTINGS.values(), ids=SETTINGS.keys())
@pytest.mark.parametrize("seed", range(3))
def test_every_stage_keeps_the_scores_that_stock_processors_keep(params: SamplingParams, seed: int) -> None:
    logits = normal(seed, width=1.0 + 2 * seed)
    context = [*np.random.default_rng(seed).integers(0, VOCAB, 300).tolist(), *logits.topk(20).indices.tolist()]
    assert_equal_to_stock(logits, context, params)


@pytest.mark.parametrize("params", SETTINGS.values(), ids=SETTINGS.keys())
@pytest.mark.parametrize("decimals", [0, 1])  # a handful of scores for thousands of tokens; a few at each
def test_scores_that_tie_at_a_cut_go_as_they_do_with_stock_processors(params: SamplingParams, decimals: int) -> None:
    assert_equal_to_stock(normal(7, 5_000).round(decimals=decimals), [1, 2, 3], params)


@pytest.mark.parametrize("params", SETTINGS.values(), ids=SETTINGS.keys())
def test_tokens_without_a_score_stay_without_one(params: SamplingParams) -> None:
    logits = normal(8)
    logits[torch.randperm(VOCAB, generator=torch.Generator().manual_seed(1))[: VOCAB // 2]] = -torch.inf
    assert_equal_to_stock(logits, range(100, 200), params)


@pytest.mark.parametrize("seed", range(40))
def test_a_small_vocabulary_under_any_settings_equals_stock(seed: int) -> None:
    rng = np.random.default_rng(seed)
    params = SamplingParams(
        temperature=float(rng.uniform(0.05, 3.0)),
        top_k=int(rng.integers(0, 500)),
        top_p=float(rng.uniform(0.01, 1.0)),
        min_p=float(rng.uniform(0.0, 0.3)),
        repetition_penalty=float(rng.uniform(0.5, 2.0)),
    )
    logits = normal(seed, int(rng.integers(2, 4_000)))
    assert_equal_to_stock(logits, rng.integers(0, logits.numel(), 50).tolist(), params)


def test_a_top_p_that_float32_rounds_onto_a_cumulative_probability_cuts_where_stock_does() -> None:
    logits = normal(9, 60)
    reached = logits.sort().values.softmax(-1).cumsum(-1)
    for mass in reached[:-1].tolist():
        for beside in (-1e-10, 0.0, 1e-10):
            assert_equal_to_stock(logits, [], SamplingParams(top_p=1 - (mass + beside)))


def test_ids_that_have_no_score_are_no_matter_to_the_penalty() -> None:
    logits = normal(10, 50)
    params = SamplingParams(repetition_penalty=1.5)
    assert torch.equal(run_stages(logits, [3, 50, 70], params)[-1][2], run_stages(logits, [3], params)[-1][2])
