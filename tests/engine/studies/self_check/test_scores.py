"""What follows from logits that are known exactly, or between two numbers: held against transformers and float64."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from engine.config import SamplingParams
from engine.decode.sampling import run_stages
from engine.studies.self_check.scores import Scores, Spread, exact_scores, known_scores, removed, staged

SETTINGS = [
    SamplingParams(),
    SamplingParams(temperature=0),
    SamplingParams(temperature=0, repetition_penalty=0.2),
    SamplingParams(temperature=0.3),
    SamplingParams(temperature=1e-40),
    SamplingParams(top_k=1),
    SamplingParams(top_k=17),
    SamplingParams(top_p=0.0),
    SamplingParams(top_p=0.8),
    SamplingParams(min_p=0.1),
    SamplingParams(min_p=1.0),
    SamplingParams(repetition_penalty=1e30),
    SamplingParams(temperature=0.7, top_k=90, top_p=0.9, min_p=0.01, repetition_penalty=1.3),
]
ALL = frozenset(range(0, 400, 3))


def rows(count: int, size: int = 400) -> list[torch.Tensor]:
    made = torch.Generator().manual_seed(5)
    return [torch.randn(size, generator=made) * 4 for _ in range(count)]


def wide(row: torch.Tensor, slack: float) -> Scores:
    return known_scores(row.numpy().astype(np.float64), slack, np.empty(0, np.int64), np.empty(0))


@pytest.mark.parametrize("params", SETTINGS, ids=str)
def test_a_known_row_keeps_what_transformers_processors_keep(params):
    for row in rows(8):
        theirs = run_stages(row, tuple(ALL), params)
        for (name, _, scores), (own_name, _, own) in zip(
            theirs, staged(exact_scores(row.numpy()), ALL, params), strict=True
        ):
            kept = np.flatnonzero(scores.numpy() > -np.inf)
            assert own_name == name
            assert set(own.ids[own.sure]) <= set(kept) <= set(own.ids)
            assert own.sure.all()  # nothing lies on an edge here
            if params.temperature not in (0, 1e-40):
                assert np.array_equal(own.low, scores.numpy()[kept])  # the same float32 numbers
            probs = scores.double().softmax(-1).numpy()[own.ids]
            assert np.allclose(Spread(own).probs_low, probs, atol=1e-12)
            assert np.allclose(Spread(own).probs_high, probs, atol=1e-12)


@pytest.mark.parametrize("params", SETTINGS, ids=str)
def test_whatever_lies_within_the_slack_stays_within_the_bounds(params):
    noise = torch.Generator().manual_seed(6)
    for slack in (1e-5, 1e-2, 0.5):
        for row in rows(4):
            off = row + (torch.rand(row.shape, generator=noise) * 2 - 1) * slack * 0.99
            bounds, before = staged(wide(off, slack), ALL, params), None
            for (_, _, own), (_, _, true) in zip(bounds, staged(exact_scores(row.numpy()), ALL, params), strict=True):
                spread, truth = Spread(own), Spread(true)
                assert set(own.ids[own.sure]) <= set(true.ids) <= set(own.ids)
                low, high = spread.entropy_bits
                assert low - 1e-9 <= truth.entropy_bits[0] <= high + 1e-9
                assert spread.log_sum_exp[0] - 1e-9 <= truth.log_sum_exp[0] <= spread.log_sum_exp[1] + 1e-9
                for token in true.ids[:: max(1, true.ids.size // 20)].tolist():
                    inside(spread.prob_of(token), truth.prob_of(token))
                    low, most_low, high, most_high = spread.interval_of(token)
                    inside((low, most_low), truth.interval_of(token)[:2])
                    inside((high, most_high), truth.interval_of(token)[2:])
                if before is not None:
                    inside(removed(before[0], own), removed(before[1], true))
                before = spread, truth


def inside(bounds: tuple[float, float], truth: tuple[float, float]) -> None:
    assert truth[0] == pytest.approx(truth[1], abs=1e-9)
    assert bounds[0] - 1e-9 <= truth[0] <= bounds[1] + 1e-9


def test_probabilities_entropy_and_interval_on_paper():
    spread = Spread(exact_scores(np.log(np.array([0.25, 0.5, 0.25]))))
    assert spread.entropy_bits == pytest.approx((1.5, 1.5))  # 0.5 x 1 bit + 2 x 0.25 x 2 bits
    assert spread.interval_of(1) == pytest.approx((0, 0, 0.5, 0.5))  # the likeliest comes first
    assert spread.interval_of(0) == pytest.approx((0.5, 0.5, 0.75, 0.75))  # equal ones by rising id
    assert spread.interval_of(2) == pytest.approx((0.75, 0.75, 1, 1))
    assert spread.log_sum_exp == pytest.approx((0, 0), abs=1e-12)


def test_two_logits_nearer_than_twice_the_slack_may_change_places():
    near = staged(wide(torch.tensor([1.0, 1.015, 0.0]), 0.01), frozenset(), SamplingParams(temperature=0))[-1][2]
    assert near.ids.tolist() == [0, 1]
    assert not near.sure.any()
    far = staged(wide(torch.tensor([1.0, 1.03, 0.0]), 0.01), frozenset(), SamplingParams(temperature=0))[-1][2]
    assert (far.ids.tolist(), far.sure.tolist()) == ([1], [True])


def test_an_edge_of_top_p_is_open_only_within_the_slack():
    row = torch.tensor([0.5, 0.3, 0.2]).log()  # the third is kept while 0.8 < top_p
    for top_p, kept in ((0.81, 3), (0.79, 2)):
        found = staged(wide(row, 1e-4), frozenset(), SamplingParams(top_p=top_p))[-1][2]
        assert (found.ids.size, found.sure.all()) == (kept, True)
    edge = staged(wide(row, 1e-4), frozenset(), SamplingParams(top_p=0.80001))[-1][2]
    assert edge.sure.tolist() == [True, True, False]


def test_what_a_record_keeps_is_known_to_the_bit_and_bounds_the_rest():
    stock = np.array([3.0, 2.0, 1.9999, 0.0])
    known = known_scores(stock, 0.5, np.array([0, 1]), np.array([3.01, 2.02], np.float32))
    assert known.low[:2].tolist() == known.high[:2].tolist() == [float(np.float32(3.01)), float(np.float32(2.02))]
    assert known.high[2] == float(np.float32(2.02))  # no likelier than the least that was kept
    assert known.low[2] == 1.4999


def test_a_token_that_cannot_be_has_no_probability():
    spread = Spread(exact_scores(np.array([0.0, -np.inf, 0.0])))
    assert spread.prob_of(1) == (0.0, 0.0)
    assert math.isnan(spread.interval_of(1)[0])
    assert spread.entropy_bits == pytest.approx((1.0, 1.0))
