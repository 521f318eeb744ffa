"""What the host can measure: sums over everybody, and whether the engine answers."""

from __future__ import annotations

import threading
import time
import urllib.request
from collections.abc import Callable
from dataclasses import replace

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from engine.config import EngineConfig
from engine.errors import LoupeError
from engine.serving.counters import EngineHealth, add_up
from explorer.engines.pool import EnginePool
from explorer.hosting.health import Health, HealthReport
from explorer.hosting.health_route import HealthRoute
from explorer.hosting.leases import Lease, Limits, Registry
from explorer.hosting.limits import Hosting
from explorer.hosting.prometheus import _histograms, registry_of, serve
from explorer.hosting.runtime import Runtime
from tests.explorer.hosting.test_leases import Clock
from tests.explorer.hosting.test_runtime import kill
from tests.explorer.page_client import Page, engine_held, prefilled, reap, settle
from tests.fresh_loop import run_async


def numbers(server: Runtime) -> dict[str, float]:
    """Every sample of a scrape, read back by the library's own parser."""
    text = generate_latest(registry_of(server)).decode()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {sample.name + sample.labels.get("le", ""): sample.value for sample in samples}


def test_a_scrape_counts_what_was_done(own_server):
    page = prefilled(Page(own_server))
    page.ok("step")
    page.ok("step")
    found = numbers(own_server)
    assert found["loupe_sessions"] == found["loupe_sessions_known"] == found["loupe_runs"] == 1
    assert (found["loupe_tokens_total"], found["loupe_prefills_total"]) == (3, 1)
    assert (found["loupe_forward_batch_size_bucket1"], found["loupe_forward_batch_size_count"]) == (2, 2)
    assert found["loupe_step_wait_seconds_count"] == 2
    assert found["loupe_step_wait_seconds_bucket+Inf"] == 2
    waits = [step["timing_ms"]["wait"] for step in page.steps[1:]]
    assert found["loupe_step_wait_seconds_sum"] == pytest.approx(sum(waits) / 1000)
    assert found["loupe_kv_live_bytes"] == page.steps[-1]["kv_bytes"] > 0
    assert found["loupe_kv_bytes"] == page.steps[-1]["memory"]["kv_reserved_bytes"]
    assert found["loupe_engine_up"] == 1
    assert 0 <= found["loupe_engine_heartbeat_age_seconds"] < 60


def test_a_histogram_of_forwards_as_on_paper():
    sizes = ((1, 5), (3, 2), (64, 1), (70, 1))  # (sessions in a forward, such forwards)
    counters = replace(add_up([]), batch_sizes=sizes)
    batch, _ = _histograms(counters)
    found = {sample.labels.get("le", sample.name): sample.value for sample in batch.samples}
    assert [found[bound] for bound in ("1", "2", "4", "64", "+Inf")] == [5, 5, 7, 8, 9]
    assert found["loupe_forward_batch_size_sum"] == 5 + 6 + 64 + 70


def test_looking_draws_no_token(own_server):
    page = prefilled(Page(own_server))
    page.ok("what_if", step=0, sampling={"temperature": 0.5})
    page.ok("fork", step=0)
    assert numbers(own_server)["loupe_tokens_total"] == 1


def test_a_cache_that_is_freed_is_counted_once_and_its_bytes_are_gone(own_server):
    clock = Clock()
    server = Runtime(own_server.pool, Registry(Limits(grace_s=60), clock))
    page = prefilled(Page(server))
    server.tabs.release(Lease(page.tab.sid, page.owner))
    reap(server)
    clock.now = 60
    reap(server)
    reap(server)
    settle(page.tab.workspace.engine)
    found = numbers(server)
    assert (found["loupe_releases_total"], found["loupe_kv_bytes"], found["loupe_sessions"]) == (1, 0, 0)
    assert found["loupe_evictions_total"] == 0, "it went because nobody used it, not for want of room"
    page.ok("step")
    assert numbers(server)["loupe_kv_live_bytes"] == page.steps[-1]["kv_bytes"]


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

    monkeypatch.setattr("explorer.hosting.prometheus.start_http_server", start)
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

    monkeypatch.setattr("explorer.hosting.prometheus.start_http_server", taken)
    serve(server, 9100)
    assert "no metrics: port 9100" in caplog.text


# --- health ---------------------------------------------------------------------------------------------------


def test_an_engine_that_answers_is_well(pool):
    health = Health(pool)
    assert [health.look().words for _ in range(3)] == ["engine: well"] * 3


def test_a_hung_forward_turns_the_health_check_and_its_end_turns_it_back(server):
    health = Health(server.pool, patience_s=1.5)  # an idle engine shows itself once a second
    page = Page(server)
    until(lambda: answer_of(health)[0] == 200)
    with engine_held(page):
        until(lambda: answer_of(health)[0] == 503)
        assert not health.look().is_well
        assert health.look().heartbeat_age_s >= 1.5
    page.tab.workspace.engine.submit("after", lambda: iter(())).result(timeout=30)
    until(lambda: answer_of(health)[0] == 200)


def test_a_turn_that_takes_long_is_worth_a_word_before_it_is_an_illness(pool):
    health = Health(pool)
    long = EngineHealth(alive=True, heartbeat_age_s=12.3, busy=True, waiting=3)
    assert health._report(long) == HealthReport(True, "engine: no sign of life for 12 s", 12.3)
    assert health._report(replace(long, heartbeat_age_s=61)).is_well is False
    assert health._report(replace(long, heartbeat_age_s=0.9)).words == "engine: well"
    assert health._report(replace(long, alive=False)) == HealthReport(False, "engine: stopped", 12.3)


def until(holds) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline, "it never came about"
        time.sleep(0.02)


def test_a_model_on_its_way_is_well_and_one_that_failed_is_not(config: EngineConfig):
    release = threading.Event()

    def start(wanted, progress):
        release.wait(10)
        raise LoupeError("no model today")

    pool = EnginePool(config, start=start)
    health = Health(pool)
    assert health.look() == HealthReport(True, "engine: loading, 0%")
    loading = health._loading
    release.set()
    assert loading is not None and loading.future.exception(timeout=10) is not None
    assert health.look() == HealthReport(False, "engine: the model could not be loaded")


def test_an_engine_whose_thread_dies_is_replaced_by_the_health_check_and_a_run_goes_on_in_the_next(own_server):
    page = prefilled(Page(own_server))
    page.ok("step")
    kill(own_server)
    dead = page.tab.workspace.engine
    status, said = answer_of(own_server.health)
    assert status == 200
    assert said.startswith((b"ok\nengine: loading, ", b"ok\nengine: well"))  # a tiny model loads while it is asked
    assert dead not in own_server.pool.running()
    until(lambda: answer_of(own_server.health)[1] == b"ok\nengine: well\n")
    page.ok("step")
    assert len(page.steps) == 3


async def _streamlit(scope, receive, send):
    """Streamlit's own answers, as far as they matter here."""
    status = scope.get("status", 200)
    await send({"type": "http.response.start", "status": status, "headers": []})
    await send({"type": "http.response.body", "body": b"ok" if status == 200 else b"unavailable"})


def answer_of(health: Health) -> tuple[int, bytes]:
    """What a health check gets, through the real route."""
    return answer_to("/_stcore/health", health.look)


def answer_to(path: str, look: Callable[[], HealthReport], **scope) -> tuple[int, bytes]:
    said = []

    async def send(message):
        said.append(message)

    async def receive():
        return {"type": "http.request"}

    route = HealthRoute(_streamlit, look)
    run_async(route({"type": "http", "method": "GET", "path": path, **scope}, receive, send))
    return said[0]["status"], b"".join(message.get("body", b"") for message in said)


def test_the_health_check_says_how_the_engine_is():
    well = HealthReport(True, "engine: well")
    assert answer_to("/_stcore/health", lambda: well) == (200, b"ok\nengine: well\n")
    ill = HealthReport(False, "engine: stopped")
    assert answer_to("/loupe/_stcore/health", lambda: ill) == (503, b"engine: stopped\n")


def test_streamlits_own_illness_and_other_paths_pass_untouched():
    def ill() -> HealthReport:
        return HealthReport(False, "engine: stopped")

    assert answer_to("/_stcore/health", ill, status=503) == (503, b"unavailable")
    assert answer_to("/", ill) == (200, b"ok")
    assert answer_to("/_stcore/health", ill, method="HEAD")[0] == 503
    assert answer_to("/_stcore/health", ill, method="POST") == (200, b"ok")
