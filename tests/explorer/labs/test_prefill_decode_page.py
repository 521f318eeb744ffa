"""The lab's page on a tiny model: measured, bounded in a class, and computed for machines that are not here."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from engine.studies.prefill_and_decode import Phases
from explorer.labs.prefill_decode.measured import run
from explorer.labs.progress import Job
from tests.engine.quick_machine import measure_quickly
from tests.explorer.labs.answers import answer_of, unfold


@pytest.fixture(autouse=True)
def _server(app_server: None, monkeypatch: pytest.MonkeyPatch) -> None:
    measure_quickly(monkeypatch)


def lab_page() -> None:
    from explorer.labs.prefill_decode.page import page

    page()


def opened(**query: str) -> AppTest:
    page = AppTest.from_function(lab_page, default_timeout=60)
    for name, value in query.items():
        page.query_params[name] = value
    page.run()
    assert not page.exception
    return page


def done(page: AppTest, key: str) -> AppTest:
    page.button(key=f"{key}_begin").click().run()
    for _ in range(300):
        if not any(button.key == f"{key}_stop" for button in page.button):
            break
        page.run()
    assert not page.exception
    return page


def said(page: AppTest) -> str:
    return "\n".join([text.value for text in page.text] + [caption.value for caption in page.caption])


def test_the_pair_is_measured():
    page = done(opened(long="30", short="5"), "phases")
    assert answer_of(page).startswith("30 prompt tokens and 5 new ones took")
    first = unfold(page, "pd_measured").table[0].value
    assert list(first["request"]) == ["30 + 5", "30 + 5", "5 + 30", "5 + 30"]
    assert list(first["phase"]) == ["prefill", "decode"] * 2


def test_pieces_of_every_size_are_measured_and_their_caches_compared():
    page = done(opened(p="16"), "pieces")  # the link opens the part
    assert "One pass over 16 tokens took" in said(page)
    assert "the same to rounding, not bit for bit" in said(page)


def test_a_measured_machine_puts_the_least_time_beside_the_measured_one():
    page = unfold(opened(long="12", short="3"), "pd_machine", "pd_measured")
    page = done(done(page, "machine"), "phases")
    assert "its ridge is at" in said(page).replace("\\", "")
    assert any({"time", "at least", "times the least"} <= set(shown.value.columns) for shown in page.table)
    assert "this machine, measured" in page.selectbox(key="on").options


def test_a_stopped_measurement_gives_what_was_measured(pool):
    engine = pool.request().future.result()
    job = Job("inputs")

    def report(done: int, total: int, words: str = "") -> None:
        job.is_stopped = done == 4
        job.report(done, total, words)

    (times,) = run(engine, Phases((5, 6), [(6, 30)]), report).result()
    assert (len(times.sweeps_ms), len(times.steps_ms)) == (1, 3)


def test_the_8b_on_an_h100_is_computed_without_a_run():
    page = opened(cl="500", cs="20")
    assert answer_of(page).startswith("On one H100 SXM, Llama 3.1 8B takes")
    told = said(unfold(page, "pd_bounds"))
    assert "ridge of H100 SXM is 295 FLOP per byte" in told
    assert "from 295." in told
    assert "One request alone" in told


def test_a_machine_without_a_published_rate_of_arithmetic_says_so():
    assert "No rate of arithmetic is published for Apple M4 Pro" in said(opened(on="Apple M4 Pro"))


def test_a_model_larger_than_the_memory_is_said_to_be():
    assert "at least 2 of these are needed" in said(opened(model="Llama 3.1 70B"))


def test_a_pair_longer_than_the_model_reads_is_cut_in_words_or_refused_in_words():
    assert "GPT-2 reads 1,024 positions" in said(opened(model="GPT-2", cl="2000", cs="20", w="bf16"))
    page = opened(long="1020", short="10")
    page.button(key="phases_begin").click().run()
    assert "need 1,029 positions" in said(page)


def test_in_a_class_the_machine_is_not_measured_and_runs_are_short(monkeypatch):
    monkeypatch.setenv("LOUPE_MODE", "hosted")
    page = unfold(opened(p="8"), "pd_machine")
    assert not any(button.key == "machine_begin" for button in page.button)
    assert "not measured in a class" in said(page)
    assert page.number_input(key="long").max == 64
    assert page.number_input(key="p").max == 64
