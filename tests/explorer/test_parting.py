"""Tabs that go away: their runs stop, their caches are freed, and nothing of them adds up."""

from __future__ import annotations

import gc
import threading
from dataclasses import replace

import pytest

from engine.kv_store import KVStore
from explorer.engine_pool import EnginePool
from explorer.hosting import Hosting
from explorer.leases import Lease, Limits, Registry
from explorer.runtime import Runtime
from tests.explorer.page_client import Page, engine_held, prefilled
from tests.explorer.test_leases import Clock

LIMITS = Limits(grace_s=60, idle_s=900, forget_s=3_600, abandon_s=20_000)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def server(pool: EnginePool, clock: Clock) -> Runtime:
    return Runtime(pool, Registry(LIMITS, clock))


@pytest.fixture
def endless(page: Page) -> Page:
    """A run of 3 steps that no rule ends."""
    page.ok("settings", stop={"use_end_ids": False}, sampling={"temperature": 1.0}, seed=3)
    prefilled(page)
    page.ok("step")
    page.ok("step")
    return page


def leave(page: Page, clock: Clock) -> None:
    page.server.tabs.release(Lease(page.tab.sid, page.owner))
    page.server.reap()
    clock.now += 60
    page.server.reap()


def state_of(page: Page):
    return page.tab.workspace.active.session._state


def test_a_run_whose_page_is_gone_ends_for_disconnect_and_its_cache_is_freed(endless, clock):
    other = prefilled(Page(endless.server))
    leave(endless, clock)
    last = endless.tab.workspace.active.records[-1]
    assert last.finish_reason == "disconnect"
    assert [check.rule for check in last.stops if check.fired] == ["disconnect"]
    assert state_of(endless).store.reserved_bytes == 0
    assert state_of(other).store.reserved_bytes > 0
    other.ok("step")


def test_within_the_grace_period_nothing_stops(endless, clock):
    endless.server.tabs.release(Lease(endless.tab.sid, endless.owner))
    endless.server.reap()
    clock.now = 59
    endless.server.reap()
    assert endless.tab.workspace.active.records[-1].finish_reason is None
    assert not state_of(endless).is_released


def test_presses_that_wait_when_the_page_goes_are_not_run(endless, clock):
    for _ in range(100):
        endless.queue("step")
    with engine_held(endless) as free:
        endless.say()  # one step is under way, the rest waits
        threading.Timer(0.2, free.set).start()
        leave(endless, clock)
    records = endless.tab.workspace.active.records
    assert len(records) <= 4
    assert records[-1].finish_reason == "disconnect"


def test_an_idle_tab_is_freed_but_not_ended(endless, clock):
    clock.now = 900
    endless.server.reap()
    assert state_of(endless).is_released
    assert endless.tab.workspace.active.records[-1].finish_reason is None


def test_who_comes_back_late_goes_on_with_the_same_tokens(endless, clock):
    twin = Page(endless.server)
    twin.ok("hello", sid=endless.tab.sid)  # a copy that never left
    leave(endless, clock)
    again = Page(endless.server)
    assert again.ok("hello", sid=endless.tab.sid) == {"how": "resumed"}
    assert again.header["session"]["finish_reason"] is None
    for page in (again, twin):
        page.ok("step")
        page.ok("step")
    assert len(again.steps) == 5
    assert again.drawn == twin.drawn


def test_a_page_that_only_lost_its_connection_goes_on_with_a_step(endless, clock):
    leave(endless, clock)
    endless.ok("step")
    assert len(endless.steps) == 4
    assert endless.header["session"]["finish_reason"] is None


def test_a_run_that_had_ended_keeps_its_reason(endless, clock):
    endless.ok("stop")
    leave(endless, clock)
    assert endless.tab.workspace.active.records[-1].finish_reason == "user"
    again = Page(endless.server)
    again.ok("hello", sid=endless.tab.sid)
    assert again.header["session"]["finish_reason"] == "user"


def test_a_thousand_sessions_opened_and_abandoned_leave_nothing_behind(server, clock):
    loading = server.pool.request()

    def live_bytes() -> int:
        loading.future.result().stepper.prefixes.clear()  # shared prompts have a byte budget of their own
        gc.collect()
        return sum(store.reserved_bytes for store in gc.get_objects() if isinstance(store, KVStore))

    prefilled(Page(server))
    before, users, threads = live_bytes(), loading.users, threading.active_count()
    most = 0
    for number in range(1_000):
        page = prefilled(Page(server), f"student {number}")
        server.tabs.release(Lease(page.tab.sid, page.owner))
        clock.now += 10  # so about six are within their grace period at any time
        server.reap()
        most = max(most, sum(not state.is_released for state in _states(server)))
    assert most <= 8
    assert len(server.tabs) <= 3_600 / 10 + 2
    clock.now += 3_600
    server.reap()
    server.reap()
    assert len(server.tabs) == 1  # the one tab that is still open
    assert live_bytes() <= before
    assert loading.users == users
    assert threading.active_count() == threads


def _states(server: Runtime):
    return [tab.workspace.active.session._state for tab in server.tabs.tenants()]


def test_over_the_budget_the_longest_untouched_cache_goes_first(pool, clock):
    server = Runtime(pool, Registry(LIMITS, clock), Hosting(mode="hosted", kv_bytes=1))
    pages = []
    for clock.now in (0, 1, 2):
        pages.append(prefilled(Page(server)))
    clock.now = 3
    pages[0].say()  # touched last
    each = pages[0].tab.kv_bytes
    server.hosting = replace(server.hosting, kv_bytes=2 * each)
    server.reap()
    assert [state_of(page).is_released for page in pages] == [False, True, False]
    server.hosting = replace(server.hosting, kv_bytes=2 * each - 1)
    server.reap()
    assert [state_of(page).is_released for page in pages] == [False, True, True]
    pages[1].ok("step")
    assert len(pages[1].steps) == 2


def test_work_under_way_is_never_shed(pool, clock):
    server = Runtime(pool, Registry(LIMITS, clock), Hosting(mode="hosted", kv_bytes=1))
    page = prefilled(Page(server))
    with engine_held(page):
        n = page.queue("prefill", prompt="x" * 40, mode="raw")
        page.say()
        server.reap()
    while page.open:
        page.say()
    assert page.answers[n]["ok"]
