"""The class of students: one of them against a real server, and the counting by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks.load.__main__ import main
from benchmarks.load.abuse import clicks
from benchmarks.load.connection import Connection
from benchmarks.load.history import History
from benchmarks.load.page import Answer, Page
from benchmarks.load.report import summarise
from benchmarks.load.run import Used, Wanted
from benchmarks.load.seen import Seen, percentile
from benchmarks.load.server import load_server
from tests.engine.architectures import tiny_llama_folder
from tests.fresh_loop import run_async

ENDLESS = {"use_end_ids": False}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random llama."""
    return Path(tiny_llama_folder(tmp_path_factory.mktemp("tiny")))


async def opened(url: str, remembered: Mapping[str, Any] | None = None) -> Page:
    page = Page(await Connection.open(url), remembered)
    await asyncio.wait_for(page.start(), 60)
    return page


async def said(page: Page, op: str, **args: Any) -> Answer:
    return await asyncio.wait_for(page.send(op, **args), 60)


async def left(page: Page) -> None:
    await page.stop()
    await page.connection.close()


async def a_visit(url: str) -> list[list[int]]:
    """Step, lose the network, play, reload; returns the indices of the records on screen after each."""
    page, indices = await opened(url), []
    assert (await said(page, "settings", stop=ENDLESS)).error is None
    assert (await said(page, "prefill", prompt="The cat", mode="raw")).error is None
    answers = await asyncio.gather(*(said(page, "step") for _ in range(5)))
    assert [answer.value and answer.value["step"] for answer in answers] == [1, 2, 3, 4, 5]
    assert all(answer.step and answer.step["batch_size"] == 1 for answer in answers)
    indices.append([step["index"] for step in page.steps])
    page.connection.vanish()
    under_way = page.send("step")
    assert await page.move_to(await Connection.open(url, after=page.connection)) == "resumed"
    assert (await under_way).value == {"step": 6, "finish_reason": None}
    indices.append([step["index"] for step in page.steps])
    enough = asyncio.Event()
    page.on_step = lambda record, _: enough.set() if record["index"] == 9 else None
    assert (await said(page, "play", speed=None)).error is None
    await asyncio.wait_for(enough.wait(), 60)
    assert (await said(page, "pause")).error is None
    await left(page)
    page = await opened(url, page.session)
    indices.append([step["index"] for step in page.steps])
    assert page.failure is None
    await left(page)
    return indices


def test_a_client_steps_over_the_line_and_survives_a_lost_network_and_a_reload(folder):
    with load_server(str(folder), max_batch=1) as app:
        stepped, back, reloaded = run_async(a_visit(app.url))
    assert (stepped, back) == ([*range(6)], [*range(7)])
    assert reloaded == [*range(len(reloaded))]
    assert len(reloaded) >= 10  # with what was played


def answer(index: int) -> Answer:
    return Answer("step", 0.0, 0.1, value={"step": index})


def test_a_skipped_index_is_a_step_nobody_pressed_and_a_repeated_one_is_a_lost_press():
    seen = Seen()
    history = History(seen)
    history.prefilled()
    assert history.answered(answer(1))
    history.answered(answer(3))
    assert (seen.lost, seen.doubled) == (0, 1)
    history.answered(answer(3))
    assert (seen.lost, seen.doubled) == (1, 1)


def test_a_press_after_the_end_is_refused_and_no_error():
    seen = Seen()
    assert not History(seen).answered(Answer("step", 0.0, 0.1, error=("SessionFinished", "over")))
    assert not History(seen).answered(Answer("step", 0.0, 0.1, error=("InternalError", "broken")))
    assert (seen.refused, dict(seen.errors)) == (1, {"InternalError: broken": 1})


def test_a_percentile_is_a_value_that_was_seen():
    assert percentile([4.0, 1.0, 3.0, 2.0], 0.5) == 2.0
    assert percentile([float(i) for i in range(1, 101)], 0.95) == 95.0
    assert percentile([7.0], 0.99) == 7.0
    assert percentile([], 0.5) == 0.0


def test_a_click_belongs_to_the_time_in_which_it_was_pressed():
    seen = Seen()
    for at, click_ms in ((10.5, 1000.0), (10.5, 100.0), (20.5, 600.0)):
        seen.step(at, click_ms, {"timing_ms": None, "batch_size": 1}, autoplay=False)
    assert clicks(seen, 0.0, 10.0) == [1000.0]
    assert clicks(seen, 10.0, 20.0) == [100.0, 600.0]


def test_a_step_that_the_server_made_by_itself_must_be_the_next_one_too():
    seen = Seen()
    history = History(seen)
    history.prefilled()
    for index in (1, 2, 4):
        history.played(index)
    assert (seen.lost, seen.doubled) == (0, 1)


def test_batches_are_averaged_over_forwards_and_the_parts_of_a_click_add_up():
    seen = Seen()
    timing = {"wait": 5.0, "forward": 10.0, "sample": 2.0, "total": 20.0}
    for _ in range(4):
        seen.step(1.0, 50.0, {"timing_ms": timing, "batch_size": 4}, autoplay=False)
    seen.step(1.0, 500.0, {"timing_ms": timing, "batch_size": 1}, autoplay=True)
    found = summarise(Wanted(5, 2.0, True, 0, 3.0, 2.0, 30.0), seen, Used(2.0, 1.0, 0.1, 5, 2.0, 1.0, (0.0, 0.0)))
    assert found.batch_forward == pytest.approx(5 / 2)  # one forward of four, one of one
    assert found.tokens_per_s == 2.5
    assert found.p99_ms == 50.0  # autoplay is not a click
    assert found.wait_ms + found.forward_ms + found.sample_ms + found.record_ms + found.around_ms == 50.0


@pytest.mark.parametrize("wrong", [["--clients", "1001"], ["--clients", "0"], ["--seconds", "601"]])
def test_the_size_and_the_length_of_a_run_are_bounded(wrong, capsys):
    with pytest.raises(SystemExit):
        main(wrong)
    assert "from" in capsys.readouterr().err
