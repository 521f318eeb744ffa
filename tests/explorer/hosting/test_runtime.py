"""Tabs that reload, are duplicated, lose their connection or their server: tokens stay, tensors go in time."""

from __future__ import annotations

import threading
import time
from contextlib import suppress

from engine.config import Budgets, EngineConfig
from engine.errors import LoupeError
from explorer.engines.pool import EnginePool
from explorer.hosting.leases import Lease, Registry
from explorer.hosting.limits import LOOKS, Hosting
from explorer.hosting.runtime import Runtime, engine_config
from explorer.workspace import recipe_json
from explorer.workspace.recipe_json import to_json
from tests.explorer.page_client import Page, engine_held, on_loop, prefilled, reopened, settle

# --- reload, duplicate, restart -------------------------------------------------------------------------------


def test_a_reload_takes_up_the_very_session(run, server):
    server.tabs.release(Lease(run.tab.sid, run.owner))
    again = reopened(run)
    assert again.tab is run.tab
    assert again.header["how"] == "resumed"
    assert (again.drawn, len(server.tabs)) == (run.drawn, 1)
    again.ok("step")


def test_a_copy_steps_alone_where_its_original_does(run):
    run.ok("settings", solo=True)
    copy = reopened(run)
    assert copy.header["settings"]["solo"] is True
    assert copy.tab.workspace.active.session.solo


def test_a_rebuilt_tab_steps_alone_where_it_remembers_that(run, pool):
    assert reopened(run, Runtime(pool, Registry()), solo=True).tab.workspace.active.session.solo
    assert not reopened(run, Runtime(pool, Registry())).tab.workspace.active.session.solo


def test_a_duplicated_tab_gets_a_copy_of_its_own(run, server):
    copy = reopened(run)
    assert copy.tab is not run.tab
    assert copy.drawn == run.drawn
    assert copy.header["session"]["sid"] != run.header["session"]["sid"]
    assert [t["role"] for t in copy.header["tokens"]] == [t["role"] for t in run.header["tokens"]]
    copy.ok("rewind", step=0)
    run.ok("step")
    assert (len(copy.steps), len(run.steps)) == (1, 5)


def test_after_a_restart_the_recipe_brings_the_same_tokens_back(run, pool):
    restarted = Runtime(pool, Registry())
    again = reopened(run, restarted)
    assert again.header["how"] == "rebuilt"
    assert again.drawn == run.drawn
    assert again.header["session"]["recipe"] == run.header["session"]["recipe"]
    assert again.header["session"]["url"] == run.header["session"]["url"]
    assert again.steps[1]["forced"]
    run.ok("step")
    again.ok("step")
    assert again.drawn == run.drawn


def test_a_forged_recipe_is_refused_and_the_page_works(server):
    page = Page(server, session={"sid": "nobody", "recipe": {"version": 1, "prompt_ids": "x"}})
    assert page.header["how"] == "new"
    assert "prompt_ids" in page.header["notice"]["message"]
    page.ok("prefill", prompt="abc", mode="raw")


def test_ids_outside_the_vocabulary_in_a_recipe_are_refused(run, pool):
    recipe = {**run.header["session"]["recipe"], "chosen_ids": [5, 6, 7, 100_000]}
    page = Page(Runtime(pool, Registry()), session={"sid": "nobody", "recipe": recipe})
    assert page.header["how"] == "new" and page.header["notice"]
    page.ok("prefill", prompt="abc", mode="raw")


def test_a_sleeping_session_wakes_when_it_is_touched(run):
    on_loop(run.tab.sleep)
    settle(run.tab.workspace.engine)
    assert run.tab.workspace.active.session._state.is_released
    twin = reopened(run)  # a copy that never slept
    run.ok("step")
    twin.ok("step")
    assert run.drawn == twin.drawn


def test_work_under_way_is_cancelled_when_its_tab_is_put_to_sleep(run):
    with engine_held(run) as free:
        n = run.queue("prefill", prompt="x" * 200, mode="raw")
        run.until(lambda: run.header["busy"])
        threading.Timer(0.1, free.set).start()
        on_loop(run.tab.sleep)
    run.finish()
    assert run.answers[n]["error"]["kind"] == "SessionError"


# --- models ---------------------------------------------------------------------------------------------------


def test_two_first_visitors_share_one_load(config: EngineConfig):
    started, release = [], threading.Event()

    def start(wanted, progress):
        started.append(wanted.model)
        progress("half", 0.5)
        release.wait(10)
        raise LoupeError("no model today")

    pool = EnginePool(config, start=start)
    first, second = pool.request(), pool.request()
    assert first is second
    while first.fraction == 0:
        time.sleep(0.001)
    assert (first.text, first.fraction) == ("half", 0.5)
    release.set()
    assert str(first.future.exception(timeout=10)) == "no model today"
    assert started == [config.model]
    third = pool.request()
    assert third is not first  # a failed load is tried again
    assert third.future.exception(timeout=10) is not None
    assert len(started) == 2


def test_an_accident_while_loading_is_said_politely(config: EngineConfig, caplog):
    def start(wanted, progress):
        raise RuntimeError("secret path /x/y")

    error = EnginePool(config, start=start).request().future.exception(timeout=10)
    assert isinstance(error, LoupeError)
    assert "secret" not in str(error)
    assert "secret path" in caplog.text


def test_the_recipe_of_a_copy_is_the_servers_not_the_browsers(run):
    stale = {**run.header["session"]["recipe"], "chosen_ids": [1], "forced": []}
    page = Page(run.server, session={"sid": run.tab.sid, "recipe": stale})
    assert page.header["how"] == "copied"
    assert page.drawn == run.drawn
    saved = run.tab.workspace.saved()
    assert saved is not None and recipe_json.from_json(to_json(saved)) == saved


def test_a_class_shares_prompts_and_one_person_sees_every_prefill_at_its_price():
    assert engine_config(Hosting()).prefix_bytes == 0
    assert engine_config(Hosting(mode="hosted", model="named")) == EngineConfig(model="named")
    assert EngineConfig().prefix_bytes > 0


def test_the_limits_of_a_class_are_the_engines_budgets():
    hosting = Hosting(
        mode="hosted", max_sessions=30, max_branches=4, kv_bytes=10**9, session_kv_bytes=10**7, max_new_tokens=50
    )
    budgets = engine_config(hosting).budgets
    assert budgets == Budgets(150, 10**9, 10**7, 50, LOOKS), "30 tabs, each with 4 runs and one that replaces them"
    assert engine_config(Hosting()).budgets == Budgets()


# --- an engine that dies --------------------------------------------------------------------------------------


def kill(server: Runtime) -> None:
    """End the engine's thread in the middle of a turn, as a fault of the process would."""
    (engine,) = server.pool.running()

    def die() -> None:
        raise SystemExit("injected")

    engine._ready.result().turn = die  # type: ignore[method-assign]
    with suppress(LoupeError):
        engine.submit("somebody", lambda: iter(())).result(timeout=30)  # type: ignore[arg-type, return-value]
    engine._thread.join(30)
    assert not engine.is_alive


def restarted(server: Runtime) -> None:
    loading = server.pool.request()
    loading.future.result(timeout=60)
    server.pool.leave(loading)


def test_every_run_of_a_tab_goes_on_in_the_engine_that_replaced_a_dead_one(own_server):
    page = prefilled(Page(own_server))
    page.ok("settings", stop={"use_end_ids": False}, seed=3)
    page.ok("step")
    page.ok("fork", step=0)
    page.ok("step")
    twin = reopened(page)
    kill(own_server)
    restarted(own_server)
    before = page.drawn
    page.ok("step")
    assert page.drawn[:-1] == before
    assert len(page.header["session"]["branches"]) == 2
    page.ok("switch", branch=1)
    page.ok("step")
    assert len(page.steps) == 3
    assert not any(branch.is_lost for branch in page.tab.workspace.branches)
    assert not twin.tab.workspace.engine.is_alive, "nobody has asked for it yet"


def test_a_run_that_somebody_had_ended_stays_ended_in_the_engine_that_replaced_a_dead_one(own_server):
    page = prefilled(Page(own_server))
    page.ok("settings", stop={"use_end_ids": False})
    page.ok("step")
    page.ok("stop")
    kill(own_server)
    restarted(own_server)
    refused = page.ask("step")
    assert refused["error"]["kind"] == "SessionFinished"
    assert page.header["session"]["finish_reason"] == "user"
    page.ok("rewind", step=1)
    page.ok("step")


def test_a_reload_after_the_engine_died_takes_up_the_very_session(own_server):
    page = prefilled(Page(own_server))
    page.ok("step")
    kill(own_server)
    restarted(own_server)
    own_server.tabs.release(Lease(page.tab.sid, page.owner))
    again = reopened(page)
    assert again.tab is page.tab
    assert again.drawn == page.drawn
    again.ok("step")


def test_in_a_full_class_a_tab_whose_engine_died_keeps_its_place(own_server):
    own_server.hosting = Hosting(mode="hosted", max_sessions=1)
    page = prefilled(Page(own_server))
    kill(own_server)
    restarted(own_server)
    assert own_server.ask("somebody else") is not None
    page.ok("step")
