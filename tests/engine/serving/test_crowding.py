"""PyTorch's threads sleep between two operations where others want the cores, and stay awake again once nobody does."""

from __future__ import annotations

import threading

import pytest

from engine.serving import crowding
from engine.serving.crowding import CALM, CALM_WINDOWS, CROWDED, WINDOW_S, Crowding


class System:
    """A clock and a count that a test moves by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.lost = 0.0, 0
        monkeypatch.setattr(crowding.time, "perf_counter", lambda: self.now)
        monkeypatch.setattr(crowding, "taken_away", lambda: self.lost)

    def turn(self, watch: Crowding, per_second: float, seconds: float = 1.01 * WINDOW_S) -> None:
        watch.begin()
        self.now += seconds
        self.lost += round(per_second * seconds)
        watch.end()


@pytest.fixture
def system(monkeypatch):
    return System(monkeypatch)


@pytest.fixture
def watch():
    made = Crowding()
    yield made
    made.close()


OTHERS: set[threading.Thread] = set()


@pytest.fixture(autouse=True)
def others() -> None:
    """Second teams of other engines of this process come and go with how busy the machine is: they do not count."""
    OTHERS.clear()
    OTHERS.update(threading.enumerate())


def second_teams() -> int:
    return sum(thread.name == "loupe-second-team" for thread in set(threading.enumerate()) - OTHERS)


def test_cores_that_are_taken_away_often_make_the_threads_sleep(system, watch):
    system.turn(watch, CROWDED - 20)
    assert not watch.is_crowded
    system.turn(watch, CROWDED + 20)
    assert watch.is_crowded
    assert second_teams() == 1
    system.turn(watch, CROWDED + 20)
    assert second_teams() == 1


def test_they_stay_awake_again_after_a_while_of_calm_and_no_sooner(system, watch):
    system.turn(watch, 2 * CROWDED)
    for _ in range(CALM_WINDOWS - 1):
        system.turn(watch, CALM / 2)
    system.turn(watch, 2 * CALM)  # not calm: the while begins again
    for _ in range(CALM_WINDOWS - 1):
        system.turn(watch, CALM / 2)
    assert watch.is_crowded
    system.turn(watch, CALM / 2)
    assert not watch.is_crowded
    assert second_teams() == 0


def test_what_happens_between_turns_says_nothing(system, watch):
    for _ in range(10):
        system.turn(watch, 0.0, WINDOW_S / 4)
        system.lost += 10_000
    assert not watch.is_crowded


def test_a_short_turn_alone_is_not_judged(system, watch):
    system.turn(watch, 3 * CROWDED, 0.51 * WINDOW_S)
    assert not watch.is_crowded
    system.turn(watch, 3 * CROWDED, 0.51 * WINDOW_S)
    assert watch.is_crowded


def test_closing_leaves_no_thread(system):
    watch = Crowding()
    system.turn(watch, 2 * CROWDED)
    watch.close()
    assert second_teams() == 0
