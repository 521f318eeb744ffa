"""Who owns a session and when its tensors go, on a clock of our own."""

from __future__ import annotations

import pytest

from explorer.hosting.leases import Lease, Limits, Registry


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Guest:
    """A tenant that counts what is done to it."""

    def __init__(self, sid: str, clock: Clock) -> None:
        self.sid = sid
        self.last_used = clock.now
        self.slept = self.parted = self.closed = 0

    def sleep(self) -> None:
        self.slept += 1

    def part(self) -> None:
        self.parted += 1
        self.sleep()

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def registry(clock: Clock) -> Registry[Guest]:
    return Registry(Limits(grace_s=60, idle_s=900, forget_s=3600, abandon_s=20_000), clock)


@pytest.fixture
def guest(registry: Registry[Guest], clock: Clock) -> Guest:
    made = Guest("s", clock)
    registry.add(made, "anna")
    return made


def test_tensors_go_once_the_grace_period_is_over(registry, guest, clock):
    registry.release(Lease("s", "anna"))
    for clock.now in (0, 59.9):
        registry.reap()
        assert guest.slept == 0
    clock.now = 60
    registry.reap()
    registry.reap()
    assert guest.slept == 1
    assert registry.get("s") is guest


def test_who_comes_back_in_time_keeps_everything(registry, guest, clock):
    registry.release(Lease("s", "anna"))
    clock.now = 30
    assert registry.claim("s", "after the reload") == "yours"
    clock.now = 500
    registry.reap()
    assert guest.slept == 0


def test_a_session_with_a_live_owner_is_never_shared(registry, guest):
    assert registry.claim("s", "bert") == "taken"
    assert registry.claim("s", "anna") == "yours"
    assert registry.claim("t", "bert") == "unknown"


def test_a_late_release_does_not_take_it_from_the_next_owner(registry, guest, clock):
    registry.release(Lease("s", "anna"))
    assert registry.claim("s", "bert") == "yours"
    registry.release(Lease("s", "anna"))
    for clock.now in (1, 500):
        registry.reap()
    assert guest.slept == 0
    assert registry.claim("s", "carl") == "taken"


def test_an_idle_tab_gives_its_tensors_back_once_and_again_after_new_use(registry, guest, clock):
    clock.now = 900
    registry.reap()
    registry.reap()
    assert guest.slept == 1
    guest.last_used = 1000
    clock.now = 1899
    registry.reap()
    assert guest.slept == 1
    clock.now = 1900
    registry.reap()
    assert guest.slept == 2


def test_what_nobody_owns_is_forgotten_in_the_end(registry, guest, clock):
    registry.release(Lease("s", "anna"))
    registry.reap()
    clock.now = 3600
    registry.reap()
    assert (guest.closed, len(registry), registry.claim("s", "anna")) == (1, 0, "unknown")


def test_a_tab_left_open_for_hours_is_forgotten_too(registry, guest, clock):
    clock.now = 20_000
    registry.reap()
    assert (guest.closed, len(registry)) == (1, 0)


def test_only_who_is_gone_parts_and_who_is_idle_sleeps(registry, guest, clock):
    clock.now = 900
    registry.reap()
    assert (guest.parted, guest.slept) == (0, 1)
    guest.last_used = 950
    registry.release(Lease("s", "anna"))
    registry.reap()
    clock.now = 960
    registry.reap()
    assert (guest.parted, guest.slept) == (1, 2)


def test_a_place_is_kept_for_the_grace_period_and_no_longer(registry, guest, clock):
    assert (registry.in_use(), registry.keeps_place("s")) == (1, False)
    registry.release(Lease("s", "anna"))
    assert (registry.in_use(), registry.keeps_place("s")) == (1, True)
    clock.now = 60
    assert (registry.in_use(), registry.keeps_place("s"), registry.keeps_place("t")) == (0, False, False)
    assert registry.claim("s", "anna") == "yours"
    assert registry.in_use() == 1
