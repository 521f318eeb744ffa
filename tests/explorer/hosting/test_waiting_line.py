"""A full class: who waits, whose turn it is, and who gets the place back they only just left."""

from __future__ import annotations

import threading
import time

import pytest

from explorer.engines.pool import EnginePool
from explorer.gate.attempts import AT_ONCE, EVERY_S, Attempts
from explorer.hosting.leases import Lease, Limits, Registry
from explorer.hosting.limits import Hosting, NotHere
from explorer.hosting.runtime import Runtime, Tab
from explorer.hosting.waiting_line import SILENT_S, Waiting, WaitingLine
from explorer.pages.waiting import words
from tests.explorer.hosting.test_leases import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def door(clock: Clock) -> WaitingLine:
    return WaitingLine(clock)


@pytest.fixture
def classroom(pool: EnginePool, clock: Clock) -> Runtime:
    """A class of two places."""
    hosting = Hosting(mode="hosted", max_sessions=2)
    return Runtime(pool, Registry(Limits(grace_s=60), clock), hosting, WaitingLine(clock))


def enter(classroom: Runtime, owner: str) -> Tab | Waiting:
    loading = classroom.pool.request()
    admitted = classroom.admit(owner, {}, loading)
    if isinstance(admitted, Waiting):
        classroom.pool.leave(loading)
    return admitted


# --- the line -------------------------------------------------------------------------------------------------


def test_nobody_waits_while_there_is_a_place(door):
    assert door.ask("anna", free=1) is None


def test_places_in_line_are_in_the_order_of_coming(door):
    asked = [door.ask(owner, free=0) for owner in ("anna", "bert", "carl", "anna")]
    assert asked == [Waiting(1, 1), Waiting(2, 2), Waiting(3, 3), Waiting(1, 3)]


def test_a_free_place_goes_to_who_waited_longest_whoever_asks_first(door):
    door.ask("anna", free=0)
    door.ask("bert", free=0)
    assert door.ask("bert", free=1) == Waiting(2, 2)
    assert door.ask("anna", free=1) is None
    door.leave("anna")
    assert door.ask("bert", free=0) == Waiting(1, 1)


def test_a_newcomer_does_not_overtake_the_line(door):
    door.ask("anna", free=0)
    assert door.ask("bert", free=1) == Waiting(2, 2)


def test_who_went_away_or_fell_silent_holds_nobody_up(door, clock):
    for owner in ("anna", "bert", "carl"):
        door.ask(owner, free=0)
    door.leave("anna")
    clock.now = SILENT_S - 1
    door.ask("carl", free=0)
    clock.now = SILENT_S
    assert door.ask("carl", free=1) is None  # bert was silent for too long
    assert len(door) == 1


def test_the_place_is_said_in_words():
    assert (words(Waiting(1, 4)), words(Waiting(3, 4))) == ("You are next.", "You are number 3 in line.")


# --- the class ------------------------------------------------------------------------------------------------


def test_a_full_class_lets_the_next_one_in_when_a_tab_is_gone_for_good(classroom, clock):
    anna, bert = enter(classroom, "anna"), enter(classroom, "bert")
    assert isinstance(anna, Tab) and isinstance(bert, Tab)
    assert enter(classroom, "carl") == Waiting(1, 1)
    assert enter(classroom, "dora") == Waiting(2, 2)
    classroom.tabs.release(Lease(anna.sid, "anna"))
    assert enter(classroom, "carl") == Waiting(1, 2)  # anna may only be reloading
    clock.now = 60
    assert enter(classroom, "dora") == Waiting(2, 2)
    assert isinstance(enter(classroom, "carl"), Tab)
    assert enter(classroom, "dora") == Waiting(1, 1)


def test_a_reload_in_a_full_class_goes_back_to_its_place(classroom):
    anna = enter(classroom, "anna")
    enter(classroom, "bert")
    enter(classroom, "carl")
    classroom.tabs.release(Lease(anna.sid, "anna"))
    assert enter(classroom, "anna again") == Waiting(2, 2)
    assert classroom.take_back(anna.sid, "anna again")
    assert classroom.tab_of("anna again") is anna
    assert len(classroom.waiting_line) == 1
    assert classroom.tabs.in_use() == 2


def test_nobody_takes_a_place_that_is_in_use_or_was_given_up(classroom, clock):
    anna = enter(classroom, "anna")
    assert not classroom.take_back(anna.sid, "thief")
    assert not classroom.take_back("guessed", "thief")
    classroom.tabs.release(Lease(anna.sid, "anna"))
    classroom.tabs.reap()  # the clock runs from when the release is read
    clock.now = 60
    assert not classroom.take_back(anna.sid, "anna again")


def test_two_at_the_door_never_share_the_last_place(classroom, monkeypatch):
    enter(classroom, "anna")
    count = classroom.tabs.in_use

    def slow_count() -> int:
        counted = count()
        time.sleep(0.01)  # long enough for everybody to see the same free place
        return counted

    monkeypatch.setattr(classroom.tabs, "in_use", slow_count)
    start, got = threading.Barrier(8), []

    def come(number: int) -> None:
        start.wait()
        got.append(enter(classroom, f"guest {number}"))

    threads = [threading.Thread(target=come, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(isinstance(one, Tab) for one in got) == 1
    assert count() == 2


def test_without_a_cap_there_is_no_line(server):
    assert all(isinstance(enter(server, f"guest {n}"), Tab) for n in range(5))
    assert len(server.waiting_line) == 0


def test_no_address_takes_more_than_its_share_of_the_places(pool, clock):
    hosting = Hosting(mode="hosted", max_sessions=5, max_sessions_per_address=2)
    classroom = Runtime(pool, Registry(Limits(grace_s=60), clock), hosting, WaitingLine(clock))
    come = [classroom.admit(f"a{n}", {}, pool.request(), "203.0.113.7") for n in range(2)]
    with pytest.raises(NotHere, match="2 tabs are in this class already"):
        classroom.admit("a3", {}, pool.request(), "203.0.113.7")
    assert isinstance(classroom.admit("b", {}, pool.request(), "203.0.113.8"), Tab)
    assert isinstance(classroom.admit("proxy", {}, pool.request(), "127.0.0.1"), Tab)
    assert isinstance(come[0], Tab)
    classroom.tabs.drop(come[0].sid)
    assert isinstance(classroom.admit("a4", {}, pool.request(), "203.0.113.7"), Tab)


def test_wrong_keys_are_counted_by_address_and_written_down(clock, caplog):
    attempts = Attempts(clock)
    for _ in range(AT_ONCE):
        assert attempts.wait_s("203.0.113.7") == 0
        attempts.failed("203.0.113.7")
    assert attempts.wait_s("203.0.113.7") == EVERY_S
    assert attempts.wait_s("203.0.113.8") == 0
    assert caplog.text.count("a wrong host key came from 203.0.113.7") == AT_ONCE
    clock.now += EVERY_S
    assert attempts.wait_s("203.0.113.7") == 0
    attempts.failed("203.0.113.7")
    assert attempts.wait_s("203.0.113.7") == EVERY_S
