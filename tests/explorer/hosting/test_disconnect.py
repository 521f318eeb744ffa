"""Tabs that go away: their runs stop, their caches are freed, and nothing of them adds up."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from engine.config import Budgets, EngineConfig
from engine.forward.kv_store import KVStore
from explorer.engines.pool import EnginePool
from explorer.hosting.leases import Lease, Limits, Registry
from explorer.hosting.runtime import Runtime
from tests.engine.holding import hold
from tests.explorer.hosting.test_leases import Clock
from tests.explorer.page_client import Page, engine_held, prefilled, reap, reopened, settle

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
    reap(page.server)
    clock.now += 60
    reap(page.server)
    settle(page.tab.workspace.engine)


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
    reap(endless.server)
    clock.now = 59
    reap(endless.server)
    assert endless.tab.workspace.active.records[-1].finish_reason is None
    assert not state_of(endless).is_released


def test_presses_that_wait_when_the_page_goes_are_not_run(endless, clock):
    with engine_held(endless) as free:
        presses = [endless.queue("step") for _ in range(60)]
        endless.say()
        threading.Timer(0.2, free.set).start()
        leave(endless, clock)
    records = endless.tab.workspace.active.records
    assert len(records) <= 4
    assert records[-1].finish_reason == "disconnect"
    endless.finish()
    assert {endless.answers[n]["error"]["kind"] for n in presses[1:]} == {"NotDone"}


def test_an_idle_tab_is_freed_but_not_ended(endless, clock):
    clock.now = 900
    reap(endless.server)
    settle(endless.tab.workspace.engine)
    assert state_of(endless).is_released
    assert endless.tab.workspace.active.records[-1].finish_reason is None


def test_who_comes_back_late_goes_on_with_the_same_tokens(endless, clock):
    twin = reopened(endless)  # a copy that never left
    leave(endless, clock)
    again = reopened(endless)
    assert again.header["how"] == "resumed"
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
    again = reopened(endless)
    assert again.header["session"]["finish_reason"] == "user"


def test_four_hundred_sessions_opened_and_abandoned_leave_nothing_behind(server, clock):
    loading = server.pool.request()

    def live_bytes() -> int:
        loading.future.result().stepper.prefixes.clear()  # shared prompts have a byte budget of their own
        gc.collect()
        return sum(store.reserved_bytes for store in gc.get_objects() if isinstance(store, KVStore))

    prefilled(Page(server))
    before, users, threads = live_bytes(), loading.users, _threads()
    places = len(loading.future.result().sessions)
    most = 0
    for number in range(400):
        page = prefilled(Page(server), f"student {number}")
        server.tabs.release(Lease(page.tab.sid, page.owner))
        clock.now += 30  # so about two are within their grace period at any time
        reap(server)
        settle(loading.future.result())
        most = max(most, sum(not state.is_released for state in _states(server)))
    assert most <= 4
    assert len(server.tabs) <= 3_600 / 30 + 2
    clock.now += 3_600
    reap(server)
    reap(server)
    assert len(server.tabs) == 1  # the one tab that is still open
    assert live_bytes() <= before
    assert loading.users == users
    assert _threads() == threads
    settle(loading.future.result())
    assert len(loading.future.result().sessions) == places


def _threads() -> int:
    """Threads but for the one of PyTorch's second team, which comes and goes with how busy the machine is."""
    return sum(thread.name != "loupe-second-team" for thread in threading.enumerate())


def _states(server: Runtime):
    return [tab.workspace.active.session._state for tab in server.tabs.tenants()]


def test_an_engine_that_hangs_holds_up_neither_the_reaper_nor_the_tab_that_parts(server, clock):
    pages = [prefilled(Page(server)) for _ in range(3)]
    prefilling = Page(server)
    with engine_held(pages[0]) as free:
        prefilling.queue("prefill", prompt="never read", mode="raw")
        prefilling.say()  # a job is under way and waits for the engine
        began = time.monotonic()
        for page in (*pages, prefilling):
            server.tabs.release(Lease(page.tab.sid, page.owner))
        reap(server)
        clock.now += 60
        reap(server)
        clock.now += 3_600
        reap(server)
        assert time.monotonic() - began < 5, "it waited half a minute for each of them"
        assert len(server.tabs) == 0
        free.set()
    settle(pages[0].tab.workspace.engine)
    assert all(page.tab.workspace.branches == [] for page in pages)


def test_an_unused_model_whose_engine_hangs_is_let_go_and_ends_when_it_can(config, monkeypatch):
    monkeypatch.setattr("explorer.engines.pool.CLOSING_S", 0.05)
    pool = EnginePool(replace(config, model="another"), keep_unused_s=0)
    loading = pool.request(config.model)
    engine = loading.future.result(timeout=60)
    free = hold(engine)
    pool.leave(loading)
    assert pool.close_unused() == [config.model]
    assert engine.is_alive, "its thread is still in what it was at"
    free.set()
    engine.close()
    assert not engine.is_alive


def test_a_tab_that_is_gone_for_good_gives_its_places_back(endless, clock):
    engine = endless.tab.workspace.engine
    before = len(engine.sessions)
    endless.ok("fork", step=1)
    assert len(engine.sessions) == before + 1
    leave(endless, clock)
    assert len(engine.sessions) == before + 1, "its owner may come back: the recipes stay"
    clock.now += 3_600
    reap(endless.server)
    settle(engine)
    assert len(engine.sessions) == before - 1


def test_starting_over_gives_the_places_of_every_run_back(endless):
    engine = endless.tab.workspace.engine
    endless.ok("fork", step=1)
    before = len(engine.sessions)
    prefilled(endless, "xyz")
    settle(engine)
    assert len(engine.sessions) == before - 1, "two runs are closed, one is new"
    endless.ok("reset")
    settle(engine)
    assert len(engine.sessions) == before - 2


def test_a_prefill_that_is_refused_gives_its_place_back(endless):
    engine = endless.tab.workspace.engine
    before = len(engine.sessions)
    assert not endless.ask("prefill", prompt="x" * 1024, mode="raw")["ok"]
    settle(engine)
    assert len(engine.sessions) == before


@pytest.fixture
def small(config: EngineConfig, clock: Clock) -> Iterator[Runtime]:
    """A server whose engine holds two sessions."""
    yield from served(replace(config, budgets=Budgets(max_sessions=2)), clock)


@pytest.fixture
def narrow(config: EngineConfig, clock: Clock) -> Iterator[Runtime]:
    """A server whose engine holds two small caches."""
    yield from served(replace(config, budgets=Budgets(kv_bytes=2 * 64 * PER_TOKEN), prefix_bytes=0), clock)


def served(config: EngineConfig, clock: Clock) -> Iterator[Runtime]:
    server = Runtime(EnginePool(config, keep_unused_s=0), Registry(LIMITS, clock))
    server.pool.request().future.result(timeout=60)
    yield server
    server.pool.close()


PER_TOKEN = 2 * 2 * 2 * 16 * 4  # key and value, 2 layers, 2 heads, 16 wide, 4 bytes


def test_a_class_without_a_place_is_told_so_with_its_number_in_line(small):
    for _ in range(2):
        prefilled(Page(small))
    late, later = Page(small), Page(small)
    first = late.ask("prefill", prompt="abc", mode="raw")["error"]
    second = later.ask("prefill", prompt="abc", mode="raw")["error"]
    assert first["kind"] == second["kind"] == "NoPlace"
    assert "you are next in line" in first["message"]
    assert "you are number 2 in line" in second["message"]
    assert "you are next in line" in late.ask("prefill", prompt="abc", mode="raw")["error"]["message"]


def test_a_fork_without_a_place_is_refused_and_the_run_goes_on(small):
    page, _ = prefilled(Page(small)), prefilled(Page(small))
    assert page.ask("fork", step=0)["error"]["kind"] == "NoPlace"
    page.ok("step")


def test_who_waited_gets_the_place_before_a_newcomer(small):
    one, _ = prefilled(Page(small)), prefilled(Page(small))
    late, newcomer = Page(small), Page(small)
    assert not late.ask("prefill", prompt="abc", mode="raw")["ok"]
    one.ok("reset")
    settle(one.tab.workspace.engine)
    assert "number 2" in newcomer.ask("prefill", prompt="abc", mode="raw")["error"]["message"]
    prefilled(late)


def test_runs_whose_tabs_have_left_make_room_the_one_that_left_first_before_the_others(small, clock):
    first, second = prefilled(Page(small)), prefilled(Page(small))
    leave(first, clock)
    leave(second, clock)
    prefilled(Page(small))
    assert small.tabs.get(first.tab.sid) is None
    assert small.tabs.get(second.tab.sid) is second.tab


def test_over_the_budget_the_engine_frees_the_cache_that_was_not_touched_for_longest(narrow):
    pages = [prefilled(Page(narrow)) for _ in range(2)]
    pages[0].ok("step")
    assert [state_of(page).is_released for page in pages] == [False, False]
    prefilled(pages[0], "a prompt of its own that is longer than the sixty-four tokens there is room for at first")
    settle(pages[0].tab.workspace.engine)
    assert [state_of(page).is_released for page in pages] == [False, True]
    assert narrow.counters().evictions == 2, "the run that is being replaced makes room as well"
    pages[1].ok("step")
    assert pages[1].steps[-1]["rebuilt_tokens"] == 3
