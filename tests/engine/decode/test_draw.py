"""How one token comes out of a distribution: intervals of [0, 1) that a reader can add up."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from engine.config import PRESETS, SamplingParams
from engine.decode.sampling import draw_token, sample, uniform
from engine.records import Draw

AS_IS = SamplingParams()
LAST_BELOW_ONE = math.nextafter(1.0, 0.0)


def logits_of(*probs: float) -> Tensor:
    return torch.tensor(probs, dtype=torch.float64).log().float()


def draw_at(logits: Tensor, u: float) -> Draw:
    return draw_token(logits, logits, AS_IS, u=u)


@pytest.mark.parametrize(
    ("u", "token_id", "low", "high"),
    [(0.0, 1, 0.0, 0.5), (0.499, 1, 0.0, 0.5), (0.501, 2, 0.5, 0.8), (0.799, 2, 0.5, 0.8), (0.801, 0, 0.8, 1.0)],
)
def test_tokens_lie_on_the_unit_interval_by_falling_probability(
    u: float, token_id: int, low: float, high: float
) -> None:
    draw = draw_at(logits_of(0.2, 0.5, 0.3), u)
    assert draw.token_id == token_id
    assert (draw.low, draw.high) == pytest.approx((low, high), abs=1e-7)


def test_equal_tokens_lie_in_order_of_id() -> None:
    assert [draw_at(torch.zeros(4), u).token_id for u in (0.0, 0.25, 0.5, 0.75)] == [0, 1, 2, 3]


def test_an_interval_holds_its_lower_end_and_not_its_upper_one() -> None:
    halves = torch.zeros(2)
    assert draw_at(halves, 0.5).token_id == 1
    assert draw_at(halves, math.nextafter(0.5, 0.0)).token_id == 0


@pytest.mark.parametrize("size", [2, 3, 7, 1000, 1024, 1025, 49_152])
def test_u_at_either_end_is_safe_though_the_sum_may_miss_one(size: int) -> None:
    thirds = torch.from_numpy(np.random.default_rng(size).normal(0, 4, size).astype(np.float32))
    order = sorted(range(size), key=lambda i: (-float(thirds[i]), i))
    first, last = draw_at(thirds, 0.0), draw_at(thirds, LAST_BELOW_ONE)
    assert (first.token_id, first.low) == (order[0], 0.0)
    assert last.high == 1.0
    assert last.low <= LAST_BELOW_ONE
    assert last.final_prob > 0


def test_a_token_of_probability_zero_is_never_drawn() -> None:
    logits = torch.tensor([-torch.inf, 0.0, -torch.inf, -2000.0])  # exp(-2000) is 0 in float64
    for u in (0.0, 0.5, LAST_BELOW_ONE):
        draw = draw_at(logits, u)
        assert (draw.token_id, draw.low, draw.high) == (1, 0.0, 1.0)


def test_what_ten_tenths_leave_below_one_does_not_go_to_a_token_of_probability_zero() -> None:
    assert sum([0.1] * 10) == LAST_BELOW_ONE
    draw = draw_at(torch.tensor([0.0] * 10 + [-2000.0]), LAST_BELOW_ONE)
    assert (draw.token_id, draw.high) == (9, 1.0)


@pytest.mark.parametrize("seed", range(10))
def test_u_lies_in_the_interval_and_the_interval_is_as_wide_as_the_probability(seed: int) -> None:
    rng = np.random.default_rng(seed)
    logits = torch.from_numpy(rng.normal(0, 3, int(rng.integers(2, 5000))).astype(np.float32))
    for u in rng.random(50).tolist():
        draw = draw_at(logits, u)
        assert draw.low <= u < draw.high
        assert draw.high - draw.low == pytest.approx(draw.final_prob, abs=1e-12)


@pytest.mark.parametrize("u", [0.0, 0.3, 0.97, 0.999, 0.9999999, LAST_BELOW_ONE])
def test_a_draw_deep_in_a_large_vocabulary_equals_one_over_the_full_ranking(u: float) -> None:
    logits = torch.from_numpy(np.random.default_rng(1).normal(0, 1, 49_152).astype(np.float32))
    scores = logits.numpy().astype(np.float64)
    probs = np.exp(scores) / np.exp(scores).sum()
    order = np.lexsort((np.arange(49_152), -scores))
    place = min(int(np.searchsorted(np.cumsum(probs[order]), u, side="right")), 49_151)
    draw = draw_at(logits, u)
    assert draw.token_id == order[place]
    assert draw.low == pytest.approx(probs[order[:place]].sum(), abs=1e-12)


@pytest.mark.parametrize("number", [0, 1, 255, 511])
def test_equal_tokens_behind_the_likeliest_lie_in_order_of_id(number: int) -> None:
    logits = torch.cat([torch.zeros(512), torch.full((512,), math.log(2))])  # the last 512 hold 1024 of 1536 parts
    draw = draw_at(logits, (1024 + number + 0.5) / 1536)
    assert draw.token_id == number
    assert (draw.low, draw.high) == pytest.approx(((1024 + number) / 1536, (1025 + number) / 1536), abs=1e-7)


def test_draws_follow_the_distribution() -> None:
    probs = [0.4, 0.3, 0.2, 0.07, 0.03]
    draws = [sample(logits_of(*probs), [], AS_IS, seed=11, step=step).draw.token_id for step in range(4000)]
    chi_square = sum((draws.count(i) - 4000 * p) ** 2 / (4000 * p) for i, p in enumerate(probs))
    assert chi_square < 18.5  # 4 degrees of freedom: exceeded once in a thousand


def test_the_record_says_which_u_drew() -> None:
    draw = sample(logits_of(0.5, 0.5), [], AS_IS, seed=3, step=9).draw
    assert draw.mode == "inverse_cdf"
    assert draw.u == uniform(3, 9)


def test_the_same_seed_and_step_draw_the_same_token_again() -> None:
    logits = torch.from_numpy(np.random.default_rng(2).normal(0, 2, 3000).astype(np.float32))
    first, again = (sample(logits, [1], PRESETS["chat defaults"], seed=5, step=6) for _ in range(2))
    assert first.draw == again.draw
    assert len({sample(logits, [1], AS_IS, seed=5, step=step).draw.token_id for step in range(40)}) > 10


def test_greedy_owns_the_whole_interval() -> None:
    draw = draw_token(logits_of(0.2, 0.8), logits_of(0.2, 0.8), PRESETS["greedy"], u=None)
    assert (draw.mode, draw.u, draw.token_id, draw.low, draw.high) == ("greedy", None, 1, 0.0, 1.0)


def test_rank_counts_raw_scores_and_ties_go_by_id() -> None:
    logits = torch.tensor([1.0, 3.0, 3.0, 2.0, -torch.inf])
    ranks = [sample(logits, [], AS_IS, seed=0, step=0, forced=token).draw.raw_rank for token in range(5)]
    assert ranks == [4, 1, 2, 3, 5]


def test_a_forced_token_leaves_the_draw_as_it_was() -> None:
    logits = logits_of(0.6, 0.3, 0.1)
    free = sample(logits, [], SamplingParams(top_k=2), seed=1, step=2).draw
    forced = sample(logits, [], SamplingParams(top_k=2), seed=1, step=2, forced=2).draw
    assert (forced.mode, forced.token_id, forced.drawn_id) == ("forced", 2, free.token_id)
    assert (forced.u, forced.low, forced.high) == (free.u, free.low, free.high)
    assert (forced.final_prob, forced.raw_rank) == (0.0, 3)
    assert forced.raw_prob == pytest.approx(0.1, abs=1e-7)


def test_forcing_the_token_that_was_drawn_anyway_is_still_forced() -> None:
    draw = sample(logits_of(0.9, 0.1), [], PRESETS["greedy"], seed=0, step=0, forced=0).draw
    assert (draw.mode, draw.drawn_id, draw.token_id, draw.final_prob) == ("forced", 0, 0, 1.0)


def test_multinomial_mode_has_no_u_and_says_which_interval_its_token_owns() -> None:
    logits = logits_of(0.2, 0.5, 0.3)
    draws = [
        sample(logits, [], AS_IS, seed=0, step=0, generator=torch.Generator().manual_seed(s)).draw for s in range(20)
    ]
    assert {draw.token_id for draw in draws} == {0, 1, 2}
    owned = {1: (0.0, 0.5), 2: (0.5, 0.8), 0: (0.8, 1.0)}
    for draw in draws:
        assert (draw.mode, draw.u) == ("multinomial", None)
        assert (draw.low, draw.high) == pytest.approx(owned[draw.token_id], abs=1e-7)
