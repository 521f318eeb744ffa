"""Undo: what a forced token, a rewind, a new prompt or Reset dropped is built again from its recipe."""

from __future__ import annotations

import pytest

from tests.explorer.page_client import Page


def shown(page: Page) -> tuple[list[int], list[bool], str | None]:
    """Drawn tokens, which of them a person forced, and the prompt."""
    session = page.header["session"]
    return page.drawn, [step["forced"] for step in page.steps], session and session["prompt"]


ACTS = {
    "force": {"step": 2, "token_id": 88},
    "rewind": {"step": 1},
    "prefill": {"prompt": "another", "mode": "raw"},
    "reset": {},
}


@pytest.mark.parametrize("act", ACTS)
def test_undo_brings_back_tokens_settings_and_prompt(run: Page, act: str):
    before, settings = shown(run), run.header["settings"]
    run.ok(act, **ACTS[act])
    assert shown(run) != before
    assert {name: run.header["undo"][name] for name in ("act", "steps")} == {"act": act, "steps": 4}
    assert run.ok("undo") == {"act": act, "steps": 4}
    assert shown(run) == before
    assert run.header["settings"] == settings
    run.ok("step")
    assert run.drawn[:4] == before[0]


def test_undo_goes_on_with_the_tokens_that_would_have_come(run: Page):
    run.ok("step")
    wanted = run.drawn
    run.ok("rewind", step=3)
    run.ok("force", step=3, token_id=80)
    run.ok("undo")
    run.ok("step")
    assert run.drawn == wanted


def test_undo_can_be_undone(run: Page):
    run.ok("force", step=3, token_id=80)
    forced = shown(run)
    run.ok("undo")
    assert run.header["undo"]["act"] == "undo"
    run.ok("undo")
    assert shown(run) == forced


def test_undo_of_a_reset_brings_every_branch_back_with_its_name(run: Page):
    run.ok("fork", step=1)
    run.ok("step")
    branches, before = run.header["session"]["branches"], shown(run)
    assert [branch["label"] for branch in branches] == ["Branch 1", "Branch 2"]
    run.ok("reset")
    run.ok("undo")
    assert shown(run) == before
    assert run.header["session"]["branches"] == branches
    run.ok("fork", step=0)
    assert run.header["session"]["branches"][-1]["label"] == "Branch 3"


def test_undo_of_a_forced_token_leaves_the_other_branches_alone(run: Page):
    run.ok("fork", step=1)
    other = run.tab.workspace.branches[0].session
    run.ok("force", step=1, token_id=80)
    run.ok("undo")
    assert run.tab.workspace.branches[0].session is other
    assert len(run.tab.workspace.branches) == 2


def test_with_nothing_dropped_undo_says_so_and_changes_nothing(run: Page):
    run.tab.workspace.dropped = None
    before = shown(run)
    answer = run.ask("undo")
    assert not answer["ok"]
    assert "nothing to undo" in answer["error"]["message"]
    assert shown(run) == before


def test_a_rewind_that_drops_nothing_and_a_refused_token_are_not_undone(run: Page):
    run.ok("force", step=2, token_id=88)
    number = run.header["undo"]["number"]
    run.ok("rewind", step=2)
    assert not run.ask("force", step=2, token_id=10**6)["ok"]
    assert run.header["undo"]["number"] == number


def test_undoing_an_undo_leaves_a_branch_made_since_alone(run: Page):
    run.ok("rewind", step=1)
    run.ok("undo")
    run.ok("fork", step=2)
    run.ok("step")
    made = run.drawn
    run.ok("undo")
    assert [(branch["id"], branch["steps"]) for branch in run.header["session"]["branches"]] == [(1, 2), (2, 4)]
    run.ok("switch", branch=2)
    assert run.drawn == made


def test_undo_after_a_switch_changes_the_branch_that_was_forced(run: Page):
    run.ok("fork", step=1)
    run.ok("step")
    wanted = run.drawn
    run.ok("force", step=1, token_id=80)
    run.ok("switch", branch=1)
    other = run.drawn
    run.ok("undo")
    assert (run.header["session"]["branch"], run.drawn) == (2, wanted)
    run.ok("switch", branch=1)
    assert run.drawn == other
