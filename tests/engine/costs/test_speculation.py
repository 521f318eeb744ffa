"""Speculation: expected tokens, speed-up, and that the acceptance rule leaves the target's distribution as it is."""

from __future__ import annotations

import random

import pytest

from engine.costs.speculation import acceptance, pays, residual, speed_up, tokens_per_pass, tokens_per_pass_by_share


@pytest.mark.parametrize(
    ("rate", "drafted", "tokens"),
    [(0.8, 4, 3.3616), (0.6, 4, 2.3056), (0.75, 7, 3.599548), (1.0, 4, 5.0), (0.0, 4, 1.0)],
)
def test_tokens_of_a_pass_are_a_geometric_sum(rate, drafted, tokens):
    assert tokens_per_pass(rate, drafted) == pytest.approx(tokens, abs=1e-6)
    assert tokens_per_pass(rate, drafted) == pytest.approx(sum(rate**i for i in range(drafted + 1)))


def test_a_share_of_accepted_tokens_counts_otherwise():
    assert tokens_per_pass_by_share(0.6, 4) == pytest.approx(3.4)


@pytest.mark.parametrize(
    ("rate", "drafted", "cost", "times"), [(0.75, 7, 0.02, 3.1575), (0.8, 5, 0.05, 2.9514), (0.8, 4, 0.128, 2.2233)]
)
def test_speed_up_is_tokens_over_what_a_round_costs(rate, drafted, cost, times):
    assert speed_up(rate, drafted, cost) == pytest.approx(times, abs=5e-5)


def test_one_drafted_token_pays_where_it_is_accepted_more_often_than_it_costs():
    assert pays(0.3, 1, 0.29)
    assert not pays(0.3, 1, 0.31)


@pytest.mark.parametrize(
    ("target", "draft", "rate", "rest"),
    [
        ([0.5, 0.5], [0.5, 0.5], 1.0, (0.5, 0.5)),  # nothing is ever rejected
        ([0.7, 0.3], [0.4, 0.6], 0.7, (1.0, 0.0)),
        ([1.0, 0.0], [0.0, 1.0], 0.0, (1.0, 0.0)),
    ],
)
def test_acceptance_is_the_mass_that_both_give(target, draft, rate, rest):
    assert acceptance(target, draft) == pytest.approx(rate)
    assert residual(target, draft) == pytest.approx(rest)


def test_what_comes_out_is_distributed_as_the_target_whatever_the_draft():
    chance = random.Random(0)
    for _ in range(50):
        weights = [[chance.random() + 1e-3 for _ in range(5)] for _ in range(2)]
        target, draft = ([x / sum(w) for x in w] for w in weights)
        rejected = 1 - acceptance(target, draft)
        out = [min(p, q) + rejected * r for p, q, r in zip(target, draft, residual(target, draft), strict=True)]
        assert out == pytest.approx(target)
