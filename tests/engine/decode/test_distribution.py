"""What a record keeps of each stage, against float64 written out here and counts a reader can check."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.config import SamplingParams
from engine.decode.sampling import run_stages, sample, summarise
from engine.records import Stage

EVERYTHING = SamplingParams(temperature=0.8, top_k=40, top_p=0.9, min_p=0.02, repetition_penalty=1.3)


def random_logits(seed: int, size: int = 2000) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(2, 3, size).astype(np.float32))


def stages_of(logits: Tensor, params: SamplingParams, context: Sequence[int] = ()) -> tuple[Stage, ...]:
    return summarise(logits, context, params)[1]


def softmax(scores: NDArray[np.floating]) -> NDArray[np.float64]:
    weights = np.exp(scores.astype(np.float64) - scores.max())
    return np.asarray(weights / weights.sum(), dtype=np.float64)


def test_entropy_counts_a_cut_token_as_nothing() -> None:
    stage = stages_of(torch.tensor([1.0, 1.0, -9.0]), SamplingParams(top_k=2))[-1]
    assert stage.probs.tolist() == [0.5, 0.5, 0.0]
    assert stage.entropy_bits == pytest.approx(1.0, abs=1e-12)


def test_entropy_counts_a_raw_score_of_minus_infinity_as_nothing() -> None:
    stage = stages_of(torch.tensor([1.0, 1.0, -torch.inf]), SamplingParams())[-1]
    assert stage.kept == 2
    assert stage.entropy_bits == pytest.approx(1.0, abs=1e-12)


def oracle(logits: NDArray[np.float32], context: Sequence[int], params: SamplingParams) -> list[NDArray[np.float64]]:
    """Every active stage's probabilities in float64, each written as its rule reads."""
    scores = logits.astype(np.float64)
    found = [softmax(scores)]
    for token in set(context) if params.repetition_penalty != 1 else ():
        scores[token] *= params.repetition_penalty if scores[token] < 0 else 1 / params.repetition_penalty
    found.append(softmax(scores))
    scores = scores / params.temperature
    found.append(softmax(scores))
    scores = np.where(scores >= np.sort(scores)[-params.top_k], scores, -np.inf)
    found.append(softmax(scores))
    order = np.argsort(-scores)
    before = np.cumsum(found[-1][order]) - found[-1][order]
    scores[order[before >= params.top_p]] = -np.inf
    found.append(softmax(scores))
    scores[found[-1] < params.min_p * found[-1].max()] = -np.inf
    found.append(softmax(scores))
    return found


@pytest.mark.parametrize("seed", range(25))
def test_every_number_of_every_stage_equals_float64_written_out(seed: int) -> None:
    rng = np.random.default_rng(seed)
    logits = random_logits(seed, int(rng.integers(300, 3000)))
    context = rng.integers(0, logits.numel(), 60).tolist()
    params = SamplingParams(
        temperature=float(rng.uniform(0.3, 2.0)),
        top_k=int(rng.integers(5, 200)),
        top_p=float(rng.uniform(0.3, 0.99)),
        min_p=float(rng.uniform(0.005, 0.1)),
        repetition_penalty=float(rng.uniform(0.7, 1.6)) + 0.01,
    )
    candidates, stages = summarise(logits, context, params)
    expected = oracle(logits.numpy(), context, params)
    assert len(stages) == len(expected)
    for previous, stage, probs in zip([expected[0], *expected], stages, expected, strict=False):
        positive = probs[probs > 0]
        assert stage.kept == positive.size
        assert stage.removed_mass == pytest.approx(previous[probs == 0].sum(), abs=1e-6)
        assert stage.entropy_bits == pytest.approx(-(positive * np.log2(positive)).sum(), abs=1e-5)
        assert stage.probs == pytest.approx(probs[candidates.ids[:64]], abs=1e-6)
        top = np.argsort(-probs)[: min(16, positive.size)]
        assert stage.top_ids.tolist() == top.tolist()
        assert stage.top_probs == pytest.approx(probs[top], abs=1e-6)


@pytest.mark.parametrize("seed", range(10))
def test_probabilities_of_every_stage_sum_to_one_and_cut_tokens_have_none(seed: int) -> None:
    logits = random_logits(seed, 64)  # every token is shown
    for stage in stages_of(logits, EVERYTHING, context=[1, 2]):
        assert stage.probs.sum() == pytest.approx(1.0, abs=1e-12)
        assert np.count_nonzero(stage.probs) == stage.kept


def test_removed_mass_is_kept_exact_where_it_is_tiny() -> None:
    stage = stages_of(torch.tensor([0.0, -60.0, -61.0]), SamplingParams(top_k=1))[-1]
    assert stage.removed_mass == pytest.approx(math.exp(-60) + math.exp(-61), rel=1e-6, abs=0)


@pytest.mark.parametrize("penalty", [0.3, 0.9, 1.1, 2.0, 8.0])
@pytest.mark.parametrize("peak", [3.0, 25.0, 80.0])
def test_the_sums_after_a_penalty_are_those_of_the_whole_row(peak: float, penalty: float) -> None:
    logits = random_logits(11, 3000)
    logits[7] = peak  # at 25 it holds nearly all probability, and a penalty of 2 takes nearly all of it away
    params = SamplingParams(repetition_penalty=penalty)
    row = run_stages(logits, [7, 7, 8, 9], params)[-1][2].numpy().astype(np.float64)
    probs = softmax(row)
    candidates, stages = summarise(logits, [7, 7, 8, 9], params)
    positive = probs[probs > 0]
    assert stages[-1].entropy_bits == pytest.approx(-(positive * np.log2(positive)).sum(), rel=1e-11, abs=1e-13)
    assert stages[-1].probs == pytest.approx(probs[candidates.ids[:64]], rel=1e-11, abs=0)


def test_candidates_are_the_top_256_with_equal_logits_in_order_of_id() -> None:
    logits = random_logits(5, 3000).round()  # thousands of ties
    candidates, _ = summarise(logits, [], SamplingParams())
    expected = sorted(range(3000), key=lambda i: (-float(logits[i]), i))[:256]
    assert candidates.ids.tolist() == expected
    assert candidates.logits.tolist() == logits[expected].tolist()


def test_seen_marks_every_candidate_of_the_context_even_without_a_penalty() -> None:
    candidates, _ = summarise(torch.arange(300.0), [299, 299, 290, 1], SamplingParams())
    assert candidates.ids[candidates.seen].tolist() == [299, 290]


def test_log_sum_exp_turns_a_logit_into_its_raw_probability() -> None:
    logits = random_logits(6, 5000)
    candidates, (raw,) = summarise(logits, [], SamplingParams())
    assert candidates.log_sum_exp == pytest.approx(math.log(np.exp(logits.numpy().astype(np.float64)).sum()), abs=1e-12)
    assert np.exp(candidates.logits[:64] - candidates.log_sum_exp) == pytest.approx(raw.probs, rel=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_the_histogram_holds_every_other_token_in_equal_bins(seed: int) -> None:
    logits = random_logits(seed, 4000)
    candidates, _ = summarise(logits, [], SamplingParams())
    rest = np.delete(logits.numpy().astype(np.float64), candidates.ids)
    assert (candidates.tail_low, candidates.tail_high) == (rest.min(), rest.max())
    assert candidates.tail_counts.tolist() == np.histogram(rest, bins=64)[0].tolist()


def test_the_histogram_leaves_out_tokens_that_tie_with_the_last_candidate_once_only() -> None:
    candidates, _ = summarise(torch.ones(1000), [], SamplingParams())
    assert candidates.tail_counts.tolist() == [744] + [0] * 63
    assert candidates.tail_low == candidates.tail_high == 1.0


def test_a_small_vocabulary_has_no_tail() -> None:
    candidates, _ = summarise(random_logits(7, 100), [], SamplingParams())
    assert candidates.ids.size == 100
    assert candidates.tail_counts.sum() == 0
    assert (candidates.tail_low, candidates.tail_high) == (0.0, 0.0)


def test_a_score_of_minus_infinity_is_in_no_bin() -> None:
    logits = random_logits(8, 1000)
    logits[:100] = -torch.inf
    candidates, _ = summarise(logits, [], SamplingParams())
    assert candidates.tail_counts.sum() == 1000 - 100 - 256
    assert math.isfinite(candidates.tail_low)


def test_records_cannot_be_written_to() -> None:
    result = sample(random_logits(9), [], SamplingParams(), seed=0, step=0)
    for array in (result.candidates.logits, result.stages[0].probs, result.stages[0].top_ids):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
