"""The stages of sampling, against sums a reader can check and float64 written out here."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.config import PRESETS, SamplingParams
from engine.decode.sampling import Sampled, penalised_ends, run_stages, sample, standings_of
from engine.errors import NumericalFailure, UnknownToken
from engine.records import Stage

VOCAB = 49_152
EVERYTHING = SamplingParams(temperature=0.8, top_k=40, top_p=0.9, min_p=0.02, repetition_penalty=1.3)


def logits_of(*probs: float) -> Tensor:
    return torch.tensor(probs, dtype=torch.float64).log().float()


def random_logits(seed: int, size: int = 2000) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(2, 3, size).astype(np.float32))


def sampled(logits: Tensor, params: SamplingParams, context: Sequence[int] = ()) -> Sampled:
    return sample(logits, context, params, seed=0, step=0)


def final_stage(logits: Tensor, params: SamplingParams, context: Sequence[int] = ()) -> Stage:
    return sampled(logits, params, context).stages[-1]


def softmax(scores: NDArray[np.floating]) -> NDArray[np.float64]:
    weights = np.exp(scores.astype(np.float64) - scores.max())
    return np.asarray(weights / weights.sum(), dtype=np.float64)


# --- what each stage does


def test_top_p_keeps_the_token_that_crosses_the_threshold() -> None:
    stage = final_stage(logits_of(0.55, 0.30, 0.10, 0.05), SamplingParams(top_p=0.80))
    assert stage.kept == 2
    assert stage.removed_mass == pytest.approx(0.15, abs=1e-7)
    assert stage.probs.tolist() == pytest.approx([0.55 / 0.85, 0.30 / 0.85, 0, 0], abs=1e-7)


@pytest.mark.parametrize(("top_p", "kept"), [(0.75, 2), (0.76, 3), (0.50, 1), (0.875, 3), (0.88, 4)])
def test_top_p_adds_no_token_once_the_mass_is_reached_exactly(top_p: float, kept: int) -> None:
    assert final_stage(logits_of(0.5, 0.25, 0.125, 0.125), SamplingParams(top_p=top_p)).kept == kept


def test_top_p_over_a_uniform_vocabulary_keeps_its_share_whatever_the_model_computes_in() -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        stage = final_stage(torch.full((VOCAB,), 1.7).to(dtype), SamplingParams(top_p=0.9))
        assert abs(stage.kept - 44_237) <= 1
        assert stage.top_probs[0] * stage.kept == pytest.approx(1.0, abs=1e-12)


def test_repetition_penalty_divides_positive_and_multiplies_negative_scores() -> None:
    _, (name, label, scores) = run_stages(
        torch.tensor([-1.5, 2.0, -1.5, 2.0]), [0, 1], SamplingParams(repetition_penalty=1.3)
    )
    assert (name, label) == ("repetition_penalty", "repetition penalty 1.3")
    assert scores.tolist() == pytest.approx([-1.95, 1.5384615, -1.5, 2.0], abs=1e-6)


def test_repetition_penalty_acts_once_per_id_and_counts_the_prompt() -> None:
    prompt, generated = [5, 5], [5]
    scores = run_stages(torch.full((8,), 2.6), prompt + generated, SamplingParams(repetition_penalty=1.3))[-1][2]
    assert scores.tolist() == pytest.approx([2.6] * 5 + [2.0] + [2.6] * 2, abs=1e-6)


def test_temperature_sharpens_and_the_raw_probabilities_stay_beside_it() -> None:
    result = sampled(torch.tensor([2.0, 1.0, 0.0]), SamplingParams(temperature=0.5))
    raw, tempered = result.stages
    assert raw.label == "raw probability"
    assert raw.probs.tolist() == pytest.approx([0.66524, 0.24473, 0.09003], abs=1e-5)
    assert tempered.label == "temperature 0.5"
    assert tempered.probs.tolist() == pytest.approx([0.86681, 0.11731, 0.01588], abs=1e-5)
    drawn = result.draw.token_id
    assert (result.draw.raw_prob, result.draw.final_prob) == (raw.probs[drawn], tempered.probs[drawn])


def test_min_p_floor_is_relative_to_the_likeliest_token() -> None:
    stage = final_stage(logits_of(0.60, 0.25, 0.10, 0.05), SamplingParams(min_p=0.15))  # floor 0.15 * 0.60 = 0.09
    assert stage.kept == 3
    assert stage.label == "min-p 0.15"


def test_min_p_floor_is_taken_after_temperature() -> None:
    # At temperature 0.5 the ratios square: 0.25/0.60 becomes 0.174, 0.10/0.60 becomes 0.028.
    stage = final_stage(logits_of(0.60, 0.25, 0.10, 0.05), SamplingParams(temperature=0.5, min_p=0.15))
    assert stage.kept == 2


def test_top_k_keeps_every_token_that_ties_with_the_kth() -> None:
    assert final_stage(torch.tensor([3.0, 1.0, 1.0, 1.0, 0.0]), SamplingParams(top_k=2)).kept == 4


def test_top_k_cuts_in_the_penalised_order_not_in_the_raw_one() -> None:
    stage = final_stage(torch.tensor([4.0, 3.0, 2.5]), SamplingParams(top_k=1, repetition_penalty=2.0), context=[0])
    assert stage.top_ids.tolist() == [1]


# --- settings at the edge


@pytest.mark.parametrize(
    ("params", "kept"),
    [
        (SamplingParams(top_p=0), 1),
        (SamplingParams(top_p=1.0), VOCAB),
        (SamplingParams(top_p=1e-8), 1),
        (SamplingParams(top_k=100_000), VOCAB),
        (SamplingParams(top_k=0), VOCAB),
        (SamplingParams(temperature=2), VOCAB),
        (SamplingParams(repetition_penalty=2), VOCAB),
        (SamplingParams(min_p=1), 1),
    ],
)
def test_settings_at_the_edge_keep_the_right_number_of_tokens(params: SamplingParams, kept: int) -> None:
    logits = random_logits(0, VOCAB)
    result = sampled(logits, params, context=[3])
    assert result.stages[-1].kept == kept
    assert math.isfinite(result.stages[-1].entropy_bits)


def test_an_int_temperature_means_the_same_as_a_float() -> None:
    logits = random_logits(1)
    as_int, as_float = (final_stage(logits, SamplingParams(temperature=t)) for t in (2, 2.0))
    assert as_int.probs.tolist() == as_float.probs.tolist()
    assert as_int.label == as_float.label == "temperature 2"


@pytest.mark.parametrize("temperature", [1e-4, 1e-30, 5e-324])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_a_tiny_temperature_stays_finite_and_picks_the_top(temperature: float, dtype: torch.dtype) -> None:
    logits = torch.tensor([30.0, 29.0, 28.5, 0.0, -12.0], dtype=dtype)
    params = SamplingParams(temperature=temperature)
    result = sampled(logits, params)
    assert all(torch.isfinite(scores).all() for _, _, scores in run_stages(logits, [], params))
    assert result.stages[-1].probs.tolist() == [1.0, 0.0, 0.0, 0.0, 0.0]
    assert result.stages[-1].entropy_bits == 0.0
    assert result.draw.token_id == 0


@pytest.mark.parametrize("penalty", [1e-300, 1e300])
def test_an_absurd_penalty_leaves_numbers(penalty: float) -> None:
    result = sampled(torch.tensor([5.0, 0.0, -5.0, 1.0]), SamplingParams(repetition_penalty=penalty), context=[0, 1, 2])
    assert np.isfinite(result.stages[-1].probs).all()
    assert result.stages[-1].kept == 4


def test_neutral_settings_have_no_stage_of_their_own() -> None:
    neutral = SamplingParams(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, repetition_penalty=1.0)
    assert [stage.name for stage in sampled(random_logits(2), neutral).stages] == ["logits"]


def test_stages_come_in_the_order_generate_uses() -> None:
    stages = sampled(random_logits(3), EVERYTHING, context=[1]).stages
    assert [(stage.name, stage.label) for stage in stages] == [
        ("logits", "raw probability"),
        ("repetition_penalty", "repetition penalty 1.3"),
        ("temperature", "temperature 0.8"),
        ("top_k", "top-k 40"),
        ("top_p", "top-p 0.9"),
        ("min_p", "min-p 0.02"),
    ]


# --- greedy


def test_temperature_zero_is_one_hot_on_the_largest_score() -> None:
    result = sampled(torch.tensor([1.0, 5.0, 3.0]), SamplingParams(temperature=0))
    greedy = result.stages[-1]
    assert (greedy.name, greedy.label, greedy.kept) == ("greedy", "temperature 0: greedy", 1)
    assert greedy.probs.tolist() == [1.0, 0.0, 0.0]
    assert greedy.removed_mass == pytest.approx(1 - softmax(np.array([1.0, 5.0, 3.0]))[1])
    assert (result.draw.mode, result.draw.u, result.draw.token_id) == ("greedy", None, 1)


@pytest.mark.parametrize("size", [3, 100, 5000, VOCAB])
def test_greedy_takes_the_lowest_id_on_a_tie(size: int) -> None:
    logits = torch.zeros(size)
    logits[[size // 2, size // 2 + 1, size - 1]] = 7.0
    assert sampled(logits, SamplingParams(temperature=0)).draw.token_id == size // 2


def test_greedy_runs_the_penalty_but_no_warper() -> None:
    params = SamplingParams(temperature=0, top_k=5, top_p=0.5, min_p=0.5, repetition_penalty=2.0)
    result = sampled(torch.tensor([4.0, 3.0]), params, context=[0])
    assert [stage.name for stage in result.stages] == ["logits", "repetition_penalty", "greedy"]
    assert result.draw.token_id == 1


def test_greedy_gives_the_same_token_for_every_seed() -> None:
    logits = random_logits(4)
    tokens = {sample(logits, [], PRESETS["greedy"], seed=s, step=s).draw.token_id for s in range(20)}
    assert tokens == {int(logits.argmax())}


# --- the input


def test_sampling_never_changes_its_input() -> None:
    logits = random_logits(10)
    copy = logits.clone()
    for params in (*PRESETS.values(), EVERYTHING, SamplingParams(temperature=1e-38)):
        sampled(logits, params, context=[1, 2, 3])
        assert torch.equal(logits, copy)


def test_scores_of_a_model_in_16_bits_are_sampled_in_float32() -> None:
    for dtype in (torch.bfloat16, torch.float16):
        stages = run_stages(random_logits(11).to(dtype), [1], EVERYTHING)
        assert {scores.dtype for _, _, scores in stages} == {torch.float32}


@pytest.mark.parametrize(
    ("logits", "words"),
    [
        ([1.0, math.nan, 2.0], "NaN for 1 of 3 scores"),
        ([math.nan] * 3, "NaN for 3 of 3 scores"),
        ([1.0, math.inf, 2.0], r"\+infinity for 1 of 3 scores"),
        ([math.nan, math.inf, 2.0], "NaN for 1 of 3 scores"),
        ([-math.inf] * 3, "no finite score"),
    ],
)
@pytest.mark.parametrize("params", [SamplingParams(), SamplingParams(temperature=0), EVERYTHING])
def test_scores_that_are_not_numbers_are_refused_by_name(
    logits: list[float], words: str, params: SamplingParams
) -> None:
    with pytest.raises(NumericalFailure, match=words):
        sampled(torch.tensor(logits), params)


# --- the penalty and the EOS token


def test_an_eos_token_in_the_prompt_is_seen_to_be_penalised_by_as_much_as_generate_does() -> None:
    logits = torch.tensor([2.0, 3.0, -1.0, 0.0, 4.0])
    params = SamplingParams(repetition_penalty=1.25)
    stages = {name: scores for name, _, scores in run_stages(logits, [1, 2, 3, 4], params)}
    assert stages["repetition_penalty"].tolist() == [2.0, 2.4000000953674316, -1.25, 0.0, 3.200000047683716]
    found = penalised_ends(logits, [1, 2], [3, 4], params, (0, 1, 2, 4))
    assert [(e.token_id, e.logit, e.in_prompt) for e in found] == [(1, 3.0, True), (2, -1.0, True), (4, 4.0, False)]
    assert [e.penalised for e in found] == [stages["repetition_penalty"][e.token_id].item() for e in found]
    assert penalised_ends(logits, [1, 2], [3, 4], SamplingParams(), (0, 1, 2, 4)) == ()


# --- one token by name


def test_the_standing_of_a_token_names_the_stage_that_removed_it() -> None:
    (found,) = standings_of((2,), logits_of(0.60, 0.25, 0.10, 0.05), [], SamplingParams(top_k=3, top_p=0.5))
    assert [(p.stage, p.label) for p in found.stages] == [
        ("logits", "raw probability"),
        ("top_k", "top-k 3"),
        ("top_p", "top-p 0.5"),
    ]
    assert [p.prob for p in found.stages] == pytest.approx([0.10, 0.10 / 0.95, 0.0], abs=1e-7)
    assert (found.rank, found.removed_by) == (3, "top-p 0.5")


def test_a_token_that_holds_less_than_a_float_can_show_was_not_removed() -> None:
    (found,) = standings_of((3,), torch.tensor([0.0, 1.0, 2.0, -9.0]), [], SamplingParams(temperature=0.005))
    assert (found.stages[-1].prob, found.removed_by, found.rank) == (0.0, None, 4)


def test_the_rank_of_every_token_is_its_place_in_a_stable_float64_sort() -> None:
    logits = torch.randn(1000, generator=torch.Generator().manual_seed(3)).round(decimals=1)  # many ties
    order = torch.sort(logits.double(), descending=True, stable=True).indices.tolist()
    found = standings_of(range(1000), logits, [], SamplingParams(temperature=0.7, top_k=900))
    assert [one.rank for one in found] == [order.index(token_id) + 1 for token_id in range(1000)]
    assert [one.logit for one in found] == logits.tolist()
    probs = torch.softmax(logits.double(), 0).tolist()
    assert [one.stages[0].prob for one in found] == pytest.approx(probs, rel=1e-9)


@pytest.mark.parametrize("token_id", [-1, 4])
def test_a_token_the_model_does_not_have_is_refused(token_id: int) -> None:
    logits = logits_of(0.60, 0.25, 0.10, 0.05)
    with pytest.raises(UnknownToken, match="run from 0 to 3"):
        standings_of((0, token_id), logits, [], SamplingParams())
    with pytest.raises(UnknownToken, match="run from 0 to 3"):
        sample(logits, [], SamplingParams(), seed=0, step=0, forced=token_id)
