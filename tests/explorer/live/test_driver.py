"""A tab's commands: in order and exactly once whatever the browser repeats; an error leaves the session as it was."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest

from explorer.engines.pool import EnginePool
from explorer.hosting.leases import Registry
from explorer.hosting.runtime import Runtime
from explorer.live import driver
from explorer.live.wire import Command, parse
from explorer.operations import run_steps
from explorer.operations.operation import at_once
from tests.explorer.page_client import Page, engine_held, prefilled

# --- exactly once ---------------------------------------------------------------------------------------------


def test_ten_commands_in_one_value_are_ten_steps(page):
    prefilled(page)
    for _ in range(10):
        page.queue("step")
    page.say()
    while page.open:
        page.say()
    assert [step["index"] for step in page.steps] == list(range(11))


def test_a_repeated_value_runs_nothing_twice(page):
    prefilled(page)
    page.queue("step")
    value = page.value()
    for _ in range(3):
        page.say(value)
    assert len(page.steps) == 2


def test_a_value_that_was_skipped_is_made_up_for_by_the_next(page):
    prefilled(page)
    page.queue("step")
    page.value()  # never arrives: Streamlit keeps only the newest value
    page.queue("step")
    page.say()
    assert len(page.steps) == 3


def test_an_older_value_that_arrives_late_changes_nothing(page):
    prefilled(page)
    page.queue("step")
    older = page.value()
    page.queue("step")
    page.say()
    while page.open:
        page.say()
    page.say(older)
    assert len(page.tab.workspace.active.records) == 3


def test_commands_run_in_the_order_of_their_numbers(page):
    prefilled(page)
    n = page.next
    shuffled = [{"n": n + 2, "op": "rewind", "step": 1}, {"n": n, "op": "step"}, {"n": n + 1, "op": "step"}]
    page.say({**page.value(), "cmds": shuffled})
    assert len(page.tab.workspace.active.records) == 2


def test_numbers_may_have_gaps(page):
    prefilled(page)
    n = page.next + 5
    value = {**page.value(), "cmds": [{"n": n, "op": "step"}]}
    for _ in range(3):
        assert page.say(value)["ack"] in (n, page.next - 1)
    assert len(page.tab.workspace.active.records) == 2


def test_eight_threads_with_the_same_value_take_one_step(page, monkeypatch, caplog):
    prefilled(page)

    def slow_step(workspace, args):
        time.sleep(0.02)  # wide enough for the other threads to come in
        return (yield from run_steps.step(workspace, args))

    monkeypatch.setitem(driver.OPERATIONS, "step", slow_step)
    n = page.queue("step")
    said = (page.tab, page.owner, parse(page.value()))
    threads = [threading.Thread(target=page.server.receive, args=said) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    while page.open:
        page.say()
    assert page.answers[n]["ok"]
    assert caplog.text == ""
    assert len(page.tab.workspace.active.records) == 2


def test_two_page_instances_count_apart(server):
    first = prefilled(Page(server))
    second = Page(server, owner=first.owner)
    second.tab = first.tab
    second.ok("step")  # its number 1 is not the first page's number 1
    assert len(first.tab.workspace.active.records) == 2


# --- answers --------------------------------------------------------------------------------------------------


def test_an_answer_is_kept_until_the_browser_has_it(page):
    prefilled(page)
    n = page.queue("ask", step=0, text="a")
    value = page.value()
    for _ in range(3):  # frames may be skipped: the same answer comes again
        assert [a["n"] for a in page.say(value)["answers"]] == [n]
    page.open.clear()
    assert page.say()["answers"] == []


def test_every_command_is_answered(page):
    for op in ("hello", "reset", "stop", "nonsense", ""):
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

    monkeypatch.setitem(driver.OPERATIONS, "step", at_once(explode))
    answer = page.ask("step")
    assert answer["error"]["kind"] == "InternalError"
    assert "secret" not in answer["error"]["message"]
    assert "secret detail" in caplog.text
    monkeypatch.undo()
    page.ok("step")


def test_a_value_that_is_no_wire_is_refused():
    for value in (None, 5, [], {}, {"mount": ""}, {"mount": "m", "cmds": {}}, {"mount": "m", "cmds": [{"op": "step"}]}):
        with pytest.raises(Exception, match="must") as caught:
            parse(value)
        assert type(caught.value).__name__ == "BadCommand"


# --- busy -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("op", "waits"), [("step", [0.3, 0.6, 1.2, 2.0, 2.0]), ("prefill", [0.3, 0.6, 1.0, 1.0])])
def test_the_longer_a_command_takes_the_less_often_its_page_asks(op, waits):
    job = driver.Job(Command(1, op, {}), driver.MountLog(), iter(()))
    for calls, seconds in enumerate(waits):
        job.calls = calls
        assert job.patience_s(0.3) == pytest.approx(seconds)


def test_every_call_that_waits_in_vain_is_counted(page):
    prefilled(page)
    page.tab._patience_s = 0.01
    with engine_held(page):
        page.queue("step")
        for calls in (1, 2, 3):
            page.say()
            assert page.tab.job.calls == calls
    page.say()
    assert len(page.steps) == 2


def test_long_work_is_busy_until_done_and_runs_once(page):
    prefilled(page)
    with engine_held(page):
        n = page.queue("step")
        page.queue("step")
        for _ in range(2):
            header = page.say()
            assert header["busy"]["text"] == "step"
            assert header["ack"] == n - 1
    while page.open:
        page.say()
    assert page.header["busy"] is None
    assert len(page.steps) == 3


def test_a_prefill_says_how_far_it_is(page):
    with engine_held(page):
        page.queue("prefill", prompt="x" * 100, mode="raw")
        page.say()
        page.tab.workspace.activity.session.progress = ("prefill", 48, 100)
        assert page.say()["busy"] == {"text": "prefilling", "done": 48, "total": 100}
    page.say()


@pytest.mark.parametrize(("op", "args"), [("check", {}), ("layer_times", {"step": 3})])
def test_a_stop_behind_a_long_look_ends_it_and_not_the_run(run, op, args):
    with engine_held(run):
        look = run.queue(op, **args)
        run.say()
        assert run.header["busy"] is not None
        stop = run.queue("stop")
        run.say()
    while run.open:
        run.say()
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
    while page.open:
        page.say()
    assert page.answers[prefill]["error"]["kind"] == "SessionError"
    assert page.answers[stop]["value"] == {"cancelled": True}
    assert page.header["session"]["recipe"] == before
    assert page.header["session"]["finish_reason"] is None


def test_a_check_of_the_numbers_says_how_far_it_is_and_can_be_stopped(page):
    prefilled(page)
    before = page.header["session"]["recipe"]
    with engine_held(page):
        check = page.queue("check")
        page.say()
        page.tab.workspace.activity.session.progress = ("check", 2, 4)
        assert page.say()["busy"] == {"text": "checking the numbers", "done": 2, "total": 4}
        stop = page.queue("stop")
        page.say()
    while page.open:
        page.say()
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
    while page.open:
        page.say()
    assert page.header["session"]["finish_reason"] == "user"
    assert page.ask("step")["error"]["kind"] == "SessionFinished"


def test_a_page_that_a_new_server_does_not_know_must_greet_first(page):
    prefilled(page)
    page.queue("step")
    stranger = Page(page.server)  # the same page instance, on a server that has forgotten it
    answers = stranger.say(page.value())["answers"]
    assert [a["error"]["kind"] for a in answers] == ["Forgotten"]
    assert stranger.header["session"] is None


def test_what_the_last_page_left_under_way_is_finished_first(server):
    first = prefilled(Page(server))
    second = Page(server, owner=first.owner)
    second.tab = first.tab
    with engine_held(first):
        first.queue("step")
        first.say()
        second.queue("step")
        assert second.say()["busy"]["text"] == "step"
    while second.open:
        second.say()
    assert [step["index"] for step in second.steps] == [0, 1, 2]


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
            waiting = page.tab.job.waiting
            waiting.add_done_callback(lambda _, name=page.owner: order.append(name))
    for page in (*players, person):
        while page.open:
            page.say()
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
            while one.open:
                one.say()
        assert [one.steps[-1]["batch_size"] for one in (page, other)] == sizes


def test_runs_to_come_step_alone_too(page):
    page.ok("settings", solo=True)
    prefilled(page)
    page.ok("fork", step=0)
    assert all(branch.session.solo for branch in page.tab.workspace.branches)
    page.ok("settings", solo=False)
    assert not any(branch.session.solo for branch in page.tab.workspace.branches)
