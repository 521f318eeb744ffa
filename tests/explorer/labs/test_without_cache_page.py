"""The lab's page on a tiny model: a race is run, stopped, bounded in a class, and told in true numbers."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from engine.config import SamplingParams
from engine.errors import PromptTooLong
from explorer.hosting import runtime
from explorer.hosting.limits import Hosting
from explorer.labs.progress import Job
from explorer.labs.without_cache import lanes, words
from explorer.labs.without_cache.page import started
from explorer.labs.without_cache.setup import Bounds, Setup, bounds
from explorer.labs.without_cache.totals import Bill, bill
from explorer.pages.theme import PALETTES
from tests.explorer.labs.answers import answer_of, unfold
from tests.explorer.labs.test_without_cache import SMOL, race


def lab_page() -> None:
    from explorer.labs.without_cache.page import page

    page()


def opened(**query: str) -> AppTest:
    page = AppTest.from_function(lab_page, default_timeout=60)
    for name, value in query.items():
        page.query_params[name] = value
    page.run()
    assert not page.exception
    return page


def raced(page: AppTest) -> AppTest:
    page.button(key="race_begin").click().run()
    for _ in range(200):
        if not any(button.key == "race_stop" for button in page.button):
            break
        page.run()
    assert not page.exception
    return page


def said(page: AppTest) -> str:
    return "\n".join([text.value for text in page.text] + [caption.value for caption in page.caption])


@pytest.mark.usefixtures("app_server")
def test_a_race_counts_what_the_formulas_say_and_draws_the_same_tokens():
    page = opened(prompt="abcd", n="12")  # a byte a token: P = 4
    assert "114 positions without the cache" in said(page)  # 12 x 4 + 12 x 11 / 2
    assert answer_of(page).startswith(
        "To write 12 tokens after 4 prompt tokens, 15 tokens run through the model with the KV cache, and 114 "
        "without it: 7.6 times as many"
    )
    raced(page)
    assert answer_of(page).startswith("12 tokens took")
    told = said(unfold(page, "race_times", "race_counts", "race_tokens"))
    assert "Counted in the loops, and equal to the formulas: 12·4 + 12·11/2 = 114 positions" in told
    assert "4 + 12 − 1 = 15 with it" in told
    assert "Both sampled the same 12 token ids" in told
    assert len(page.get("plotly_chart")) == 5


@pytest.mark.usefixtures("app_server")
def test_another_setup_shows_no_result_of_the_old_one():
    page = raced(opened(prompt="abcd", n="5"))
    assert answer_of(page).startswith("5 tokens took")
    page.text_input(key="prompt").set_value("abcde").run()
    assert not page.exception
    assert answer_of(page).startswith("To write 5 tokens after 5 prompt tokens")


@pytest.mark.usefixtures("app_server")
def test_the_step_pages_prompt_is_raced_without_moving_its_run():
    page = opened(**{"from": "the Step page's", "n": "6", "draw": "the same u"})
    page.button(key="prefill_here").click().run()
    tab = runtime.runtime().tab_of(page.session_state["loupe_owner"])
    assert tab is not None and tab.workspace.active is not None
    before = tab.workspace.active.session.recipe
    told = said(unfold(raced(page), "race_tokens"))
    assert "P = 11 prompt tokens" in told  # "The cat sat"
    assert "Both sampled the same 6 token ids" in told
    assert tab.workspace.active.session.recipe == before


@pytest.mark.usefixtures("app_server")
def test_a_prompt_without_a_token_and_a_race_past_the_models_context_are_refused_in_words():
    page = opened(prompt="abc", n="10")
    page.text_input(key="prompt").set_value("").run()
    assert "The prompt is empty" in said(page)
    page.text_input(key="prompt").set_value("a" * 1020).run()
    page.button(key="race_begin").click().run()
    assert "1,020 prompt tokens and 10 new ones need 1,029 positions" in said(page)
    assert "Take 5 fewer" in said(page)


@pytest.mark.usefixtures("app_server")
def test_in_a_class_a_race_whose_last_forward_is_too_long_is_refused_before_it_begins(monkeypatch):
    monkeypatch.setenv("LOUPE_MODE", "hosted")
    page = opened(prompt="a" * 240, n="20")
    assert "would run 259 positions in one forward" in said(page)
    assert "Take 3 fewer" in said(page)
    assert not any(button.key == "race_begin" for button in page.button)
    page.number_input(key="n").set_value(17).run()
    assert any(button.key == "race_begin" for button in page.button)


def test_a_class_bounds_a_forward_by_a_piece_of_prefill_and_one_person_is_not_bound():
    assert bounds(Hosting(mode="hosted"), 256) == Bounds(64, 256)
    own = bounds(Hosting(), 256)
    own.require(5_000, 1_000)
    with pytest.raises(PromptTooLong, match="3 fewer"):
        Bounds(64, 256).require(240, 20)


def test_the_lanes_carry_both_loops_on_one_scale_and_the_text_as_text(pool):
    from engine.studies.uncached import Race

    engine = pool.request().future.result()
    run = Race(engine.tokenizer.encode("<b>a").ids, 3, SamplingParams(temperature=0))
    run.start(engine).result()
    carried = lanes.payload(run, engine.tokenizer, PALETTES["dark"])
    assert carried["prompt"] == "<b>a"
    cached, uncached = carried["ways"]
    assert (cached["positions"], uncached["positions"]) == (6, 15)  # 4 + 3 - 1 and 4 + 5 + 6
    assert len(cached["ms"]) == len(uncached["ms"]) == 3
    assert "the same id at each of 3 steps" in carried["agreement"]


def test_a_stopped_race_ends_with_the_steps_that_were_done(pool):
    engine = pool.request().future.result()
    setup = Setup("tiny", (5, 6, 7), 40, SamplingParams(temperature=0), 0)
    job = Job(setup)

    def report(done: int, total: int, words: str = "") -> None:
        job.is_stopped = done == 3
        job.report(done, total, words)

    steps = started(engine, setup, report).future.result()
    assert len(steps) == 3
    assert (job.done, job.total, job.words) == (3, 40, "step")


def told_of(cached_ms: list[float], uncached_ms: list[float]) -> str:
    return words.times(bill(race(3, cached_ms, uncached_ms), 3, SMOL))


def test_a_cache_that_did_not_pay_is_said_not_to_have_paid():
    assert "the cache did not pay off in these 3 steps" in told_of([10, 9, 9], [10, 5, 5])
    assert "In 2 of the 2 steps after the prefill the cached forward pass was the slower one" in told_of(
        [10, 9, 9], [10, 5, 5]
    )


def test_the_crossover_is_named_with_both_totals():
    told = told_of([10, 9, 1, 1], [10, 5, 5, 50])
    assert told.startswith("70.0 ms without the cache, 21.0 ms with it: 3.33 times less.")
    assert "ahead from step 3 on" in told
    assert "Half of the steps took less than 5.0 ms without the cache, and less than 1.0 ms with it" in told


def test_wrong_counts_are_called_wrong():
    good = bill(race(4, [1.0] * 3, [1.0] * 3), 4, SMOL)
    assert "equal to the formulas" in words.counted(good)
    assert "This is a fault of Loupe" in words.counted(Bill(5, good.cached, good.uncached))


def test_different_tokens_are_said_with_step_ids_and_size():
    from engine.studies.uncached import RaceStep, Turn

    steps = race(3, [1, 1, 1], [1, 1, 1])
    steps[1] = RaceStep(1, steps[1].cached, Turn(4, 10, 1.0, 9), 7, "cached", 0.031, 0.02)
    told = words.agreement(steps)
    assert "At 1 of 3 steps the two sampled different tokens, first at step 1: 7 with the cache, 9 without" in told
    assert "differ by 0.031 and the likeliest token led by 0.02" in told
