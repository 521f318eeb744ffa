"""Two branches side by side: what each gave to the other's token, and one forward for both."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.decode.inspection import logits_at
from tests.explorer.page_client import Page


@pytest.fixture
def forked(run: Page) -> Page:
    """Two branches that part in the token of step 1; the second is on screen."""
    run.ok("fork", step=1)
    run.ok("force", step=1, token_id=90)
    run.ok("settings", sampling={"top_k": 5})
    run.ok("step")
    run.ok("step")
    return run


def raw_probs(page: Page, number: int, step: int) -> np.ndarray:
    session = page.tab.workspace.branches[number].session
    logits = session.look(lambda state: logits_at(session.engine.stepper.runner, state, step).clone()).result()
    weights = np.exp(logits.double().numpy() - float(logits.max()))
    return weights / weights.sum()


def test_both_distributions_at_one_step_and_how_far_apart_they_lie(forked):
    before = (forked.header["session"]["recipe"], forked.epoch, forked.header["session"]["branches"])
    found = forked.ok("compare", branch=1, step=2)
    one, other = found["one"], found["other"]
    assert [one["label"], other["label"]] == ["Branch 2", "Branch 1"]
    ids = [[token["id"] for token in side["tokens"]] for side in (one, other)]
    parts = found["parts_at"]
    assert ids[0][:parts] == ids[1][:parts]
    assert [ids[0][parts], ids[1][parts]] == [90, 77]
    a, b = raw_probs(forked, 1, 2), raw_probs(forked, 0, 2)
    assert found["raw"]["one_other"]["kl_bits"] == pytest.approx(float((a * np.log2(a / b)).sum()), abs=1e-9)
    assert found["raw"]["other_one"]["kl_bits"] == pytest.approx(float((b * np.log2(b / a)).sum()), abs=1e-9)
    assert one["raw_prob_of_other"] == pytest.approx(a[other["token_id"]])
    assert other["raw_prob_of_other"] == pytest.approx(b[one["token_id"]])
    assert (forked.header["session"]["recipe"], forked.epoch, forked.header["session"]["branches"]) == before


def test_where_one_branch_cut_tokens_that_the_other_may_draw_the_final_divergence_is_infinite_one_way(forked):
    final = forked.ok("compare", branch=1, step=2)["final"]
    assert final["other_one"]["kl_bits"] is None
    assert 0 < final["other_one"]["unshared"] < 1
    raw = forked.ok("compare", branch=1, step=2)["raw"]
    assert all(math.isfinite(way["kl_bits"]) and way["unshared"] == 0 for way in raw.values())


def test_before_two_branches_part_their_raw_distributions_are_the_same(forked):
    assert forked.ok("compare", branch=1, step=0)["raw"]["one_other"]["kl_bits"] < 1e-9


def test_step_both_takes_one_forward(forked):
    steps = forked.ok("step_both", branch=1)["steps"]
    assert [(one["branch"], one["batch_size"]) for one in steps] == [(2, 2), (1, 2)]
    records = [branch.records for branch in forked.tab.workspace.branches]
    assert [(len(one), one[-1].batch_size) for one in records] == [(5, 2), (5, 2)]


def test_step_both_fills_a_released_cache_before_and_still_takes_one_forward(forked):
    forked.tab.workspace.branches[0].session.release().result()
    assert [one["batch_size"] for one in forked.ok("step_both", branch=1)["steps"]] == [2, 2]


def test_where_one_branch_has_ended_step_both_moves_neither(forked):
    forked.ok("stop")
    lengths = [len(branch.records) for branch in forked.tab.workspace.branches]
    answer = forked.ask("step_both", branch=1)
    assert "Branch 2 has ended" in answer["error"]["message"]
    assert [len(branch.records) for branch in forked.tab.workspace.branches] == lengths


@pytest.mark.parametrize("op", ["compare", "step_both"])
@pytest.mark.parametrize("branch", [2, 7, -1, None, True, "1"])
def test_a_branch_that_cannot_be_compared_with_is_refused_in_words(forked, op, branch):
    answer = forked.ask(op, branch=branch, step=1)
    assert not answer["ok"]
    assert answer["error"]["kind"] != "InternalError"


def test_a_step_that_only_one_branch_has_is_refused(forked):
    forked.ok("step")
    forked.ok("step")
    answer = forked.ask("compare", branch=1, step=5)
    assert "no step 5" in answer["error"]["message"]
