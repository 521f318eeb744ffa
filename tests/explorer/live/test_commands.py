"""What becomes of a command: a value, or what is wrong in words; an error leaves the session as it was."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explorer.engines.pool import EnginePool
from explorer.hosting.leases import Registry
from explorer.hosting.runtime import Runtime
from explorer.live import commands
from explorer.operations.operation import at_once
from tests.explorer.page_client import Page, engine_held, prefilled


def test_every_command_is_answered(page):
    for op in ("reset", "stop", "nonsense", ""):
        assert page.ask(op)["op"] == op


@pytest.mark.parametrize(
    ("op", "args", "kind"),
    [
        ("step", {}, "NotPrefilled"),
        ("prefill", {"prompt": "", "mode": "raw"}, "EmptyPrompt"),
        ("prefill", {"prompt": "x" * 1024, "mode": "raw"}, "PromptTooLong"),
        ("prefill", {"prompt": "x" * 200_001, "mode": "raw"}, "PromptTooLong"),
        ("prefill", {"prompt": None}, "BadCommand"),
        ("prefill", {"prompt": "x", "mode": "shout"}, "BadCommand"),
        ("settings", {"sampling": {"temperature": -1}}, "InvalidSettings"),
        ("settings", {"sampling": {"heat": 1}}, "BadCommand"),
        ("settings", {"volume": 11}, "BadCommand"),
        ("settings", {"seed": 2**63}, "BadCommand"),
        ("preset", {"name": "loud"}, "BadCommand"),
        ("switch", {"branch": 9}, "SessionError"),
        ("model", {"id": ""}, "BadCommand"),
        ("rm -rf", {}, "BadCommand"),
    ],
)
def test_a_bad_command_is_answered_with_what_is_wrong(page, op, args, kind):
    answer = page.ask(op, **args)
    assert not answer["ok"]
    assert answer["error"]["kind"] == kind
    assert len(answer["error"]["message"]) > 10


@pytest.mark.parametrize(
    ("op", "args", "kind"),
    [
        ("prefill", {"prompt": "", "mode": "raw"}, "EmptyPrompt"),
        ("rewind", {"step": 7}, "UnknownStep"),
        ("rewind", {"step": -1}, "BadCommand"),
        ("rewind", {"step": True}, "BadCommand"),
        ("rewind", {"step": 1.5}, "BadCommand"),
        ("fork", {"step": "1"}, "BadCommand"),
        ("force", {"step": 0, "token_id": 259}, "UnknownToken"),
        ("force", {"step": 9, "token_id": 5}, "UnknownStep"),
        ("ask", {"step": 0, "text": "two words"}, "PromptError"),
        ("attention", {"step": 99}, "UnknownStep"),
        ("attention_layer", {"step": 0, "layer": 2}, "UnknownLayer"),
        ("blocks", {"step": 9}, "UnknownStep"),
        ("triangle", {"layer": 0, "head": 4}, "UnknownHead"),
        ("what_if", {"step": 0, "sampling": {"top_p": 3}}, "InvalidSettings"),
        ("select", {"step": 0, "layer": 99, "head": 0}, "BadCommand"),
        ("model", {"id": "/no/such/model"}, "ModelNotFound"),
    ],
)
def test_an_error_leaves_the_session_as_it_was(page, op, args, kind):
    prefilled(page)
    page.ok("step")
    before = (page.header["session"]["recipe"], page.epoch, len(page.steps), page.header["model"])
    assert page.ask(op, **args)["error"]["kind"] == kind
    assert (page.header["session"]["recipe"], page.epoch, len(page.steps), page.header["model"]) == before
    page.ok("step")


def test_an_accident_is_logged_and_said_politely(page, monkeypatch, caplog):
    prefilled(page)

    def explode(workspace, args):
        raise ZeroDivisionError("secret detail")

    monkeypatch.setitem(commands.OPERATIONS, "step", at_once(explode))
    answer = page.ask("step")
    assert answer["error"]["kind"] == "InternalError"
    assert "secret" not in answer["error"]["message"]
    assert "secret detail" in caplog.text
    monkeypatch.undo()
    page.ok("step")


# --- busy and stop ---


def test_a_prefill_says_how_far_it_is(page):
    with engine_held(page):
        page.queue("prefill", prompt="x" * 100, mode="raw")
        page.until(lambda: page.header["busy"])
        page.tab.workspace.activity.session.progress = ("prefill", 48, 100)
        page.until(lambda: page.header["busy"] == {"text": "prefilling", "done": 48, "total": 100})
    page.until(lambda: not page.header["busy"])


@pytest.mark.parametrize(("op", "args"), [("check", {}), ("layer_times", {"step": 3})])
def test_a_stop_behind_a_long_look_ends_it_and_not_the_run(run, op, args):
    with engine_held(run):
        look = run.queue(op, **args)
        run.until(lambda: run.header["busy"])
        stop = run.queue("stop")
        run.say()
    run.finish()
    assert "stopped before it was done" in run.answers[look]["error"]["message"]
    assert run.answers[stop]["value"] == {"cancelled": True}
    assert run.header["session"]["finish_reason"] is None
    run.ok(op, **args)


def test_a_stop_of_long_work_that_is_over_by_then_leaves_the_run_alone(run):
    assert run.ok("stop", run=False) == {"cancelled": False}
    assert run.header["session"]["finish_reason"] is None
    run.ok("step")
    assert run.ok("stop") == {"cancelled": False}
    assert run.header["session"]["finish_reason"] == "user"


def test_a_stop_behind_a_prefill_cancels_it(page):
    prefilled(page)
    before = page.header["session"]["recipe"]
    with engine_held(page):
        prefill = page.queue("prefill", prompt="x" * 100, mode="raw")
        page.say()
        stop = page.queue("stop")
        page.say()
    page.finish()
    assert page.answers[prefill]["error"]["kind"] == "SessionError"
    assert page.answers[stop]["value"] == {"cancelled": True}
    assert page.header["session"]["recipe"] == before
    assert page.header["session"]["finish_reason"] is None


def test_a_check_of_the_numbers_says_how_far_it_is_and_can_be_stopped(page):
    prefilled(page)
    before = page.header["session"]["recipe"]
    with engine_held(page):
        check = page.queue("check")
        page.until(lambda: page.header["busy"])
        page.tab.workspace.activity.session.progress = ("check", 2, 4)
        page.until(lambda: page.header["busy"] == {"text": "checking the numbers", "done": 2, "total": 4})
        stop = page.queue("stop")
        page.say()
    page.finish()
    assert page.answers[check]["error"]["kind"] == "SessionError"
    assert page.answers[stop]["value"] == {"cancelled": True}
    assert page.header["session"]["recipe"] == before


def test_a_stop_behind_a_step_ends_decoding(page):
    prefilled(page)
    with engine_held(page):
        page.queue("step")
        page.say()
        page.queue("stop")
        page.say()
    page.finish()
    assert page.header["session"]["finish_reason"] == "user"
    assert page.ask("step")["error"]["kind"] == "SessionFinished"


# --- autoplay -------------------------------------------------------------------------------------------------


def test_whoever_presses_a_button_goes_before_autoplay(config):
    pool = EnginePool(replace(config, max_batch=1), keep_unused_s=0)
    server = Runtime(pool, Registry())
    players, person = [prefilled(Page(server)) for _ in range(3)], prefilled(Page(server))
    order: list[str] = []
    with engine_held(person):
        for player in players:
            player.queue("step", auto=True)
            player.say()
        person.queue("step")
        person.say()
        for page in (*players, person):
            work = page.tab.under_way
            answered = work.done
            work.done = lambda outcome, name=page.owner, answered=answered: (order.append(name), answered(outcome))
    for page in (*players, person):
        page.finish()
    pool.close()
    assert order[0] == person.owner
    assert sorted(order[1:]) == sorted(player.owner for player in players)


def test_whether_autoplay_asks_is_true_or_false(page):
    prefilled(page)
    assert page.ask("step", auto="yes")["error"]["kind"] == "BadCommand"
    page.ok("step", auto=True)


def test_a_tab_that_steps_alone_shares_its_forward_with_nobody(page, server):
    other = prefilled(Page(server))
    prefilled(page)
    page.ok("settings", solo=True)
    assert page.header["settings"]["solo"] is True
    for solo, sizes in ((True, [1, 1]), (False, [2, 2])):
        page.ok("settings", solo=solo)
        with engine_held(page):
            for one in (page, other):
                one.queue("step")
                one.say()
        for one in (page, other):
            one.finish()
        assert [one.steps[-1]["batch_size"] for one in (page, other)] == sizes


def test_runs_to_come_step_alone_too(page):
    page.ok("settings", solo=True)
    prefilled(page)
    page.ok("fork", step=0)
    assert all(branch.session.solo for branch in page.tab.workspace.branches)
    page.ok("settings", solo=False)
    assert not any(branch.session.solo for branch in page.tab.workspace.branches)
