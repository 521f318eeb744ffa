"""What the host can measure: sums over everybody, and whether the engine answers."""

from __future__ import annotations

import threading
import urllib.request
from dataclasses import replace

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from engine.config import EngineConfig
from engine.errors import LoupeError
from explorer.engine_pool import EnginePool
from explorer.health import Health, Report
from explorer.health_route import HealthRoute
from explorer.hosting import Hosting
from explorer.leases import Lease, Limits, Registry
from explorer.meter import Meter, Tally
from explorer.metrics import registry_of, serve
from explorer.runtime import Runtime
from tests.explorer.page_client import Page, engine_held, prefilled
from tests.explorer.test_leases import Clock
from tests.fresh_loop import run_async


def numbers(server: Runtime) -> dict[str, float]:
    """Every sample of a scrape, read back by the library's own parser."""
    text = generate_latest(registry_of(server)).decode()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {sample.name + sample.labels.get("le", ""): sample.value for sample in samples}


def test_a_tally_counts_values_at_or_below_each_bound():
    tally = Tally((1, 2, 4))
    for value in (1, 2, 2, 3, 9):
        tally.add(value)
    assert tally.cumulative() == [(1, 1), (2, 3), (4, 4), (float("inf"), 5)]
    assert tally.sum == 17


def test_a_scrape_counts_what_was_done(server):
    page = prefilled(Page(server))
    page.ok("step")
    page.ok("step")
    found = numbers(server)
    assert found["loupe_sessions"] == found["loupe_sessions_known"] == 1
    assert found["loupe_tokens_total"] == 3
    assert (found["loupe_step_batch_size_bucket1"], found["loupe_step_batch_size_count"]) == (3, 3)
    assert found["loupe_step_wait_seconds_count"] == 3
    assert found["loupe_step_wait_seconds_sum"] == pytest.approx(
        sum(step["timing_ms"]["wait"] for step in page.steps) / 1000
    )
    assert found["loupe_kv_bytes"] == page.steps[-1]["kv_bytes"] > 0
    assert (found["loupe_engine_up"], found["loupe_engine_heartbeat_age_seconds"]) == (1, 0)


def test_looking_draws_no_token(server):
    page = prefilled(Page(server))
    page.ok("what_if", step=0, sampling={"temperature": 0.5})
    page.ok("fork", step=0)
    assert numbers(server)["loupe_tokens_total"] == 1


def test_an_evicted_cache_is_counted_once_and_its_bytes_are_gone(pool):
    clock = Clock()
    server = Runtime(pool, Registry(Limits(grace_s=60), clock))
    page = prefilled(Page(server))
    server.tabs.release(Lease(page.tab.sid, page.owner))
    server.reap()
    clock.now = 60
    server.reap()
    server.reap()
    found = numbers(server)
    assert (found["loupe_evictions_total"], found["loupe_kv_bytes"], found["loupe_sessions"]) == (1, 0, 0)
    page.ok("step")
    assert numbers(server)["loupe_kv_bytes"] == page.steps[-1]["kv_bytes"]


def test_visitors_in_line_are_counted(pool):
    server = Runtime(pool, Registry(), Hosting(mode="hosted", max_sessions=1))
    Page(server)
    server.ask("anna")
    server.ask("bert")
    assert numbers(server)["loupe_waiting"] == 2


def test_no_name_of_a_session_is_in_a_scrape(server):
    page = prefilled(Page(server), "a secret prompt")
    text = generate_latest(registry_of(server)).decode()
    assert page.tab.sid not in text and "secret" not in text


def test_the_numbers_are_served_to_this_machine_alone(server, monkeypatch):
    started = {}

    def start(port, addr, registry):
        from prometheus_client import start_http_server

        started["server"], started["thread"] = start_http_server(port, addr=addr, registry=registry)

    monkeypatch.setattr("explorer.metrics.start_http_server", start)
    serve(server, 0)
    host, port = started["server"].server_address[:2]
    assert host == "127.0.0.1"
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        assert b"loupe_sessions 0.0" in answer.read()
    started["server"].shutdown()
    started["server"].server_close()
    started["thread"].join()


def test_a_taken_port_costs_only_the_numbers(server, monkeypatch, caplog):
    def taken(*_, **__):
        raise OSError("Address already in use")

    monkeypatch.setattr("explorer.metrics.start_http_server", taken)
    serve(server, 9100)
    assert "no metrics: port 9100" in caplog.text


def test_recent_steps_are_those_of_the_last_while(server):
    clock = Clock()
    meter = Meter(clock)
    record = prefilled(Page(server)).tab.workspace.active.records[0]
    for clock.now in (0.0, 50.0, 100.0):
        meter.stepped(replace(record, batch_size=int(clock.now) + 1))
    assert [seen.batch_size for seen in meter.recent(60)] == [51, 101]


# --- health ---------------------------------------------------------------------------------------------------


def test_an_engine_that_answers_is_well(pool):
    health = Health(pool)
    assert [health.look().is_well for _ in range(3)] == [True] * 3


def test_a_hung_forward_is_noticed_by_its_unanswered_question(server):
    clock = Clock()
    health = Health(server.pool, clock=clock, patience_s=60)
    page = Page(server)
    with engine_held(page):
        health.look()
        clock.now = 59.9
        assert health.look() == Report(True, "engine: no answer for 59.9 s", 59.9)
        clock.now = 60
        assert health.look() == Report(False, "engine: no answer for 60.0 s", 60.0)
    page.tab.workspace.engine.submit("after", lambda: iter(())).result(timeout=30)
    assert health.look() == Report(True, "engine: well")


def test_an_idle_hour_is_no_illness(pool):
    clock = Clock()
    health = Health(pool, clock=clock)
    health.look()
    pool.request().future.result().submit("after", lambda: iter(())).result(timeout=30)
    clock.now = 3600
    assert health.look() == Report(True, "engine: well")


def test_a_model_on_its_way_is_well_and_one_that_failed_is_not(config: EngineConfig):
    release = threading.Event()

    def start(wanted, progress):
        release.wait(10)
        raise LoupeError("no model today")

    pool = EnginePool(config, start=start)
    health = Health(pool)
    assert health.look() == Report(True, "engine: loading, 0%")
    loading = health._loading
    release.set()
    assert loading is not None and loading.future.exception(timeout=10) is not None
    assert health.look() == Report(False, "engine: the model could not be loaded")


def test_an_engine_that_ended_is_replaced(own_server):
    health = own_server.health
    health.look()
    own_server.pool.request().future.result().close()
    health.look()
    loading = health._loading
    assert loading is not None and loading.future.result(timeout=60).is_alive
    assert health.look().is_well


async def _streamlit(scope, receive, send):
    """Streamlit's own answers, as far as they matter here."""
    status = scope.get("status", 200)
    await send({"type": "http.response.start", "status": status, "headers": []})
    await send({"type": "http.response.body", "body": b"ok" if status == 200 else b"unavailable"})


def answer_to(path: str, report: Report, **scope) -> tuple[int, bytes]:
    said = []

    async def send(message):
        said.append(message)

    async def receive():
        return {"type": "http.request"}

    route = HealthRoute(_streamlit, lambda: report)
    run_async(route({"type": "http", "method": "GET", "path": path, **scope}, receive, send))
    return said[0]["status"], b"".join(message.get("body", b"") for message in said)


def test_the_health_check_says_how_the_engine_is():
    assert answer_to("/_stcore/health", Report(True, "engine: well")) == (200, b"ok\nengine: well\n")
    assert answer_to("/loupe/_stcore/health", Report(False, "engine: stopped")) == (503, b"engine: stopped\n")


def test_streamlits_own_illness_and_other_paths_pass_untouched():
    ill = Report(False, "engine: stopped")
    assert answer_to("/_stcore/health", ill, status=503) == (503, b"unavailable")
    assert answer_to("/", ill) == (200, b"ok")
    assert answer_to("/_stcore/health", ill, method="HEAD") == (200, b"ok")
