"""One connection: commands exactly once over lost ones, frames that say what changed, and an end with a reason."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from explorer.engines.pool import EnginePool, Loading
from explorer.gate import sizes
from explorer.hosting.leases import Registry
from explorer.hosting.limits import Hosting
from explorer.hosting.runtime import Runtime
from explorer.live import lines, live_line, messages
from tests.explorer.page_client import LOOP, Page, Socket, engine_held, on_loop, prefilled, reopened

# --- exactly once ---------------------------------------------------------------------------------------------


def test_ten_commands_at_once_are_ten_steps_in_their_order(page):
    prefilled(page)
    for _ in range(10):
        page.queue("step")
    page.finish()
    assert [step["index"] for step in page.steps] == list(range(11))


def test_a_command_that_comes_again_is_not_run_again(page):
    prefilled(page)
    n = page.queue("step")
    for _ in range(3):
        page.socket.send(json.dumps({"n": n, "op": "step", "args": {}}))
    page.say()
    page.finish()
    assert len(page.steps) == 2


def test_what_was_said_before_the_connection_was_lost_is_done_once_and_answered_on_the_next(page):
    prefilled(page)
    with engine_held(page):
        for _ in range(3):
            page.queue("step")
        page.lose()  # the server may have read any number of them
    page.connect()
    page.finish()
    assert [step["index"] for step in page.steps] == [0, 1, 2, 3]
    assert all(page.answers[n]["ok"] for n in (2, 3, 4))


def test_an_answer_is_told_again_on_the_next_connection_until_the_page_has_said_that_it_came(page):
    prefilled(page)
    n = page.queue("ask", step=0, text="a")
    page.finish()
    page.lose()
    page.seen = n - 1  # as if the frame with it had been lost
    page.answers.clear()
    page.connect()
    page.until(lambda: n in page.answers)
    page.lose()
    page.answers.clear()
    page.connect()
    page.say()
    assert page.answers == {}


def test_a_reconnect_brings_only_the_steps_that_the_page_lacks(page):
    prefilled(page)
    page.ok("step")
    page.queue("step")
    page.lose()
    page.frames.clear()
    page.connect()
    page.finish()
    assert sum(len(frame.get("steps", [])) for frame in page.frames) == 1
    assert len(page.steps) == 3


def test_a_restarted_server_does_the_commands_that_had_no_answer_on_the_run_it_rebuilds(run, pool):
    session = run.header["session"]
    run.lose()
    twin = reopened(run)
    twin.ok("step")
    run.server = Runtime(pool, Registry())  # knows neither the tab nor the page instance
    run.server.loop = LOOP
    run.session = {"sid": session["sid"], "recipe": session["recipe"]}
    run.open = [{"n": run.next, "op": "step", "args": {}}]
    run.next += 1
    run.connect()
    run.finish()
    assert run.header["how"] == "rebuilt"
    assert run.drawn == twin.drawn
    run.ok("step")


def test_two_page_instances_count_apart(page):
    prefilled(page)
    page.lose()
    second = Page(page.server, owner=page.owner)
    second.ok("step")  # its number 1 is not the first page's number 1
    assert len(second.steps) == 2


# --- frames ---------------------------------------------------------------------------------------------------


def test_a_frame_names_only_what_has_changed(page):
    prefilled(page)
    page.ok("step")
    page.ok("select", layer=1, head=2)
    assert set(page.frames[-1]) == {"frame", "answers", "ack", "session"}
    page.ok("settings", seed=5)
    assert "model" not in page.frames[-1] and page.frames[-1]["settings"]["seed"] == 5


def test_frames_are_numbered_from_one_on_each_connection(page):
    prefilled(page)
    assert [frame["frame"] for frame in page.frames] == list(range(1, len(page.frames) + 1))
    page.lose()
    page.frames.clear()
    page.connect()
    page.say()
    assert page.frames[0]["frame"] == 1


def test_what_happens_while_a_browser_reads_nothing_comes_in_one_frame(page):
    prefilled(page)
    page.say()
    page.frames.clear()
    on_loop(page.socket.reads.clear)
    for _ in range(6):
        page.queue("step")
    while len(page.tab.workspace.active.records) < 7:
        pass
    on_loop(page.socket.reads.set)
    page.finish()
    with_steps = [len(frame["steps"]) for frame in page.frames if "steps" in frame]
    assert sum(with_steps) == 6
    assert len(with_steps) <= 2, "the frame that waited, and one for everything else"


def test_a_browser_that_reads_nothing_holds_nobody_up(page, server):
    prefilled(page)
    on_loop(page.socket.reads.clear)
    for _ in range(3):
        page.queue("step")
    other = prefilled(Page(server))
    for _ in range(5):
        other.ok("step")
    on_loop(page.socket.reads.set)
    page.finish()


def test_a_line_on_which_nothing_is_read_ends_and_the_session_goes_on_on_the_next(page, monkeypatch):
    monkeypatch.setattr(live_line, "READING_S", 0.05)
    prefilled(page)
    page.say()
    on_loop(page.socket.reads.clear)
    page.queue("step")
    page.serving.result(10)
    page.connect()
    page.finish()
    assert len(page.steps) == 2


def test_a_beat_is_answered_also_while_a_model_is_loading(own_server):
    page = Page(own_server, connect=False)
    own_server.pool.request = lambda *_, **__: loading  # type: ignore[method-assign]
    loading = Loading("some model")
    loading.report("Reading weights", 0.25)
    page.connect()
    page.say()
    assert page.header["loading"] == {"model": "some model", "text": "Reading weights", "fraction": 0.25}
    page.lose()


# --- play -----------------------------------------------------------------------------------------------------


async def _soon() -> None:
    """What takes no time."""


def playing(page: Page, speed: float | None = None) -> Page:
    page.ok("settings", stop={"use_end_ids": False, "max_new_tokens": 8})
    prefilled(page)
    page.ok("play", speed=speed)
    return page


def drawn(page: Page) -> None:
    page.socket.send(json.dumps({"drawn": page.frames[-1]["frame"]}))


def test_the_next_step_is_asked_for_once_the_last_is_on_screen(page):
    playing(page)
    page.until(lambda: len(page.steps) == 2)
    page.say()
    page.say()
    assert len(page.steps) == 2
    drawn(page)
    page.until(lambda: len(page.steps) == 3)


def test_an_older_frame_on_screen_is_no_credit(page):
    playing(page)
    page.until(lambda: len(page.steps) == 2)
    page.socket.send(json.dumps({"drawn": page.frames[-1]["frame"] - 1}))
    page.say()
    page.say()
    assert len(page.steps) == 2


def test_play_ends_with_the_run(page):
    playing(page)
    while page.header["play"]["on"]:
        page.next_event()
        drawn(page)
    assert page.header["session"]["finish_reason"] == "max_new_tokens"
    assert len(page.steps) == 8


def test_a_pause_ends_it_and_a_lost_connection_does_too(page):
    playing(page)
    page.ok("pause")
    page.say()
    assert page.header["play"]["on"] is False
    page.ok("play", speed=3)
    assert page.header["play"] == {"on": True, "speed": 3.0, "error": None}
    page.lose()
    page.connect()
    page.say()
    assert page.header["play"]["on"] is False


def test_play_at_two_steps_a_second_waits_half_a_second_for_each(page, monkeypatch):
    waits: list[float] = []
    playing(page, speed=2)
    monkeypatch.setattr("explorer.live.autoplay.sleep", lambda s: waits.append(s) or _soon())
    while page.header["play"]["on"]:
        page.next_event()
        drawn(page)
    assert len(waits) >= 6 and all(0 <= wait <= 0.5 for wait in waits)


@pytest.mark.parametrize("speed", [0, -1, True, "fast", 1e9])
def test_a_speed_that_is_none_is_refused(page, speed):
    prefilled(page)
    assert page.ask("play", speed=speed)["error"]["kind"] == "BadCommand"


# --- bad input ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "5", "null", "{}", "[" * 5_000, '{"beat": ' + "9" * 5_000 + "}", b"bytes"),
        *('{"n": 0, "op": "step"}', '{"n": true, "op": "step"}', '{"n": 2}', '{"op": "step"}', '{"seen": "all"}'),
        *('{"n": 2, "op": "step", "args": []}', '{"n": 2, "op": "step", "extra": 1}', '{"drawn": -1}'),
    ],
)
def test_a_message_that_is_none_ends_the_line_with_the_reason_and_the_session_stays(page, text):
    prefilled(page)
    page.socket.send(text)
    code, reason = page.end()
    assert code == live_line.BAD_MESSAGE
    assert 10 < len(reason) <= live_line.LONGEST_REASON
    page.connect()
    page.ok("step")
    assert len(page.steps) == 2


def test_a_message_that_is_too_big_ends_the_line(page):
    page.socket.send(json.dumps({"n": 1, "op": "prefill", "args": {"prompt": "x" * sizes.MOST_BYTES_IN}}))
    assert page.end()[0] == live_line.TOO_BIG


def test_a_command_out_of_order_ends_the_line(page):
    prefilled(page)
    page.socket.send(json.dumps({"n": 9, "op": "step", "args": {}}))
    code, reason = page.end()
    assert (code, reason) == (live_line.OUT_OF_ORDER, "command 9 came after 1.")
    page.connect()
    page.ok("step")


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_a_page_of_another_version_is_told_to_reload(server, version):
    page = Page(server, connect=False)
    page.connect(loupe=version)
    code, reason = page.end()
    assert code == live_line.OTHER_VERSION
    assert reason.endswith("Reload the page.")


@pytest.mark.parametrize(
    "changed",
    [
        *({"owner": "short"}, {"owner": "x" * 65}, {"owner": None}, {"mount": ""}, {"have": 5}, {"session": "me"}),
        *({"commands": [{}]}, {"commands": [{"n": n, "op": "step"} for n in range(1, 66)]}, {"seen": -1}),
    ],
)
def test_an_opening_that_is_none_ends_the_line_and_makes_no_tab(server, changed):
    page = Page(server, connect=False)
    page.connect(**changed)
    assert page.end()[0] == live_line.BAD_MESSAGE
    assert len(server.tabs) == 0


def test_a_connection_that_says_nothing_is_not_kept(server, monkeypatch):
    monkeypatch.setattr(live_line, "OPENING_S", 0.05)
    page = Page(server, connect=False)
    page.socket = Socket()
    server.loop = LOOP
    page.serving = asyncio.run_coroutine_threadsafe(live_line.Connection(page.socket.websocket(), server).serve(), LOOP)
    assert page.end() == (live_line.BAD_MESSAGE, "This connection said nothing.")


def test_a_guessed_name_of_a_session_brings_nothing(run, server):
    thief = Page(server, session={"sid": run.tab.sid[:-1] + "x", "recipe": None})
    assert thief.header["how"] == "new" and thief.header["session"] is None


def test_a_thousand_commands_at_once_are_all_done_and_nobody_else_waits_for_them(page, server, monkeypatch):
    monkeypatch.setattr(live_line, "MESSAGES_A_S", 1e6)
    monkeypatch.setattr(live_line, "MESSAGES_AT_ONCE", 1e6)
    flood, other = Page(server), prefilled(Page(server))
    for _ in range(1_000):
        flood.queue("select", layer=0, head=0)
    waiting = on_loop(lambda: len(flood.tab._queue))
    other.ok("step")
    assert waiting <= messages.MOST_COMMANDS
    flood.finish()


def test_more_messages_than_the_allowance_wait(page, monkeypatch):
    waits: list[float] = []
    sleep = live_line.asyncio.sleep
    monkeypatch.setattr(live_line.asyncio, "sleep", lambda s: waits.append(s) or sleep(0))
    for _ in range(int(live_line.MESSAGES_AT_ONCE) + 50):
        page.queue("select", layer=0, head=0)
    page.finish()
    assert max(waits) > 0.5 / live_line.MESSAGES_A_S


# --- who may come in ------------------------------------------------------------------------------------------


def test_a_newer_line_of_the_same_tab_ends_the_older_one(page):
    prefilled(page)
    again = Page(page.server, owner=page.owner)
    assert page.end()[0] == live_line.REPLACED
    again.ok("step")
    assert len(again.steps) == 2


def test_one_address_may_have_so_many_lines(server, monkeypatch):
    monkeypatch.setattr(lines, "MOST_OF_ONE_ADDRESS", 2)
    first, _ = Page(server, address="192.0.2.7"), Page(server, address="192.0.2.7")
    late = Page(server, address="192.0.2.7", connect=False)
    late.connect()
    assert late.end()[0] == live_line.NO_ROOM
    Page(server, address="192.0.2.8")
    first.lose()
    late.connect()
    late.until(lambda: "how" in late.header)


def test_this_machines_own_address_may_be_a_proxy_and_has_no_such_limit(server, monkeypatch):
    monkeypatch.setattr(lines, "MOST_OF_ONE_ADDRESS", 1)
    for _ in range(3):
        Page(server, address="127.0.0.1")


def test_who_comes_to_a_full_class_reads_the_place_in_line_and_comes_in_by_itself(pool, monkeypatch):
    monkeypatch.setattr("explorer.live.entrance.ASK_EVERY_S", 0.02)
    server = Runtime(pool, Registry(), Hosting(mode="hosted", max_sessions=1))
    inside = prefilled(Page(server))
    second, third = Page(server, connect=False), Page(server, connect=False)
    for place, page in enumerate((second, third), 1):
        page.connect()
        page.until(lambda page=page: page.header.get("place"))
        assert page.header["place"] == {"place": place, "waiting": place}
        page.queue("prefill", prompt="abc", mode="raw")  # what is said meanwhile waits
    on_loop(lambda: server.tabs.drop(inside.tab.sid))
    second.finish()
    assert second.header["place"] is None and len(second.steps) == 1
    third.say()
    assert third.header["place"]["place"] == 1


def test_a_model_that_cannot_be_had_is_said_in_words_and_in_a_class_without_its_name(config):
    for hosting, words in ((Hosting(), "/no/such/model"), (Hosting(mode="hosted"), "in the server's log")):
        server = Runtime(EnginePool(replace(config, model="/no/such/model")), Registry(), hosting)
        page = Page(server, connect=False)
        page.connect()
        page.until(lambda page=page: page.header.get("failed"))
        assert words in page.header["failed"]
        page.lose()
