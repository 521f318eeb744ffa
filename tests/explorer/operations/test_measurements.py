"""Each step on its floor: bytes and operations with every step, rates with the frame once they were measured."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explorer.engines.pool import EnginePool
from explorer.hosting.leases import Registry
from explorer.hosting.limits import Hosting
from explorer.hosting.runtime import Runtime
from explorer.operations.measurements import floor_json
from tests.engine.holding import hold
from tests.engine.quick_machine import measure_quickly
from tests.explorer.page_client import Page, prefilled


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    measure_quickly(monkeypatch, (64,))


def test_a_step_says_what_it_has_to_read_and_to_do(page):
    prefilled(page, "#~|")  # nobody else's: a prompt that was prefilled before stands on no bound
    page.ok("step")
    info = page.tab.workspace.engine.info
    multiplied = info.shape.parameters.matmul
    prefill, step = (each["floor"] for each in page.steps)
    assert prefill["weights"] == step["weights"] == 4 * multiplied
    assert step["cache"] == page.steps[1]["kv_bytes"] == 4 * info.kv_bytes_per_token
    assert step["flops"] == 2 * multiplied + 4 * info.num_layers * info.num_heads * info.head_dim * 4
    assert prefill["flops"] > 2 * step["flops"]


def test_a_prompt_that_came_from_a_shared_one_stands_on_what_was_read_of_it(config):
    server = Runtime(EnginePool(replace(config, prefix_bytes=50_000_000)), Registry())
    text = "".join(chr(97 + i % 26) for i in range(40))  # chunks of 16: two of them can be shared
    first, second, third = Page(server), Page(server), Page(server)
    for page, prompt in ((first, text), (second, text), (third, text[:32] + text[:8].upper())):
        prefilled(page, prompt)
    info = first.tab.workspace.engine.info
    whole, nothing, rest = (page.steps[0]["floor"] for page in (first, second, third))
    assert nothing is None, "all of it was copied: no forward, no bound"
    assert [page.steps[0]["forwards"] for page in (first, second, third)] == [3, 0, 1]
    matmul, head = info.shape.parameters.matmul, info.shape.parameters.head
    pair = 4 * info.num_layers * info.num_heads * info.head_dim
    assert whole["flops"] == 40 * 2 * matmul - 39 * 2 * head + pair * sum(range(1, 41))
    assert rest["flops"] == 8 * 2 * matmul - 7 * 2 * head + pair * sum(range(33, 41))
    assert rest["cache"] == whole["cache"] == third.steps[0]["kv_bytes"], "the copied keys are read all the same"
    server.pool.close()


def test_a_model_of_which_only_the_cache_is_known_has_no_floor(page):
    prefilled(page, "abc")
    session = page.tab.workspace.active.session
    info = session.engine.info
    alone = replace(info, shape=replace(info.shape, cache=info.shape.cached_layers))
    assert floor_json(session.records[0], info) == page.steps[0]["floor"]
    assert floor_json(session.records[0], alone) is None


def test_the_model_is_told_in_plain_numbers(page):
    prefilled(page)
    assert "shape" not in page.header["model"]


def test_measuring_gives_the_frame_its_rates_and_leaves_the_run_alone(page):
    prefilled(page)
    page.ok("step")
    assert page.header["machine"] is None
    before = [step["emitted_ids"] for step in page.steps]
    answer = page.ok("measure_machine")
    assert answer["machine"]["bytes_per_s"] >= answer["machine"]["bytes_per_s_median"] > 0
    assert page.header["machine"] == answer["machine"]
    page.say()
    assert page.header["machine"] == answer["machine"], "later frames have it too"
    assert [step["emitted_ids"] for step in page.steps] == before


def test_measuring_is_refused_while_somebody_else_uses_the_engine(page):
    prefilled(page)
    release = hold(page.tab.workspace.engine)
    answer = page.ask("measure_machine")
    release.set()
    assert not answer["ok"]
    assert "using the engine" in answer["error"]["message"]


def test_a_class_measures_nothing(pool):
    page = Page(Runtime(pool, Registry(), Hosting(mode="hosted")))
    prefilled(page)
    answer = page.ask("measure_machine")
    assert not answer["ok"]
    assert "would slow everybody down" in answer["error"]["message"]
    assert page.header["machine"] is None


def test_layers_are_timed_on_request_and_only_for_steps_that_are_there(page):
    prefilled(page)
    page.ok("step")
    answer = page.ok("layer_times", step=1)
    assert len(answer["layers"]) == 2
    assert min(answer["before"], answer["head"], *answer["layers"]) > 0
    for step, words in ((0, "Step 0 is the prefill"), (5, "There is no step 5")):
        refused = page.ask("layer_times", step=step)
        assert words in refused["error"]["message"]


def test_a_step_goes_on_where_the_system_will_not_say_how_large_the_process_is(page, monkeypatch):
    def refuse():
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("engine.measure.clocks._resident", refuse)
    prefilled(page)
    page.ok("step")
    assert [step["memory"]["process_bytes"] for step in page.steps] == [None, None]
    assert page.steps[1]["memory"]["kv_live_bytes"] > 0
