"""The player of lessons: it knows the values and places that the checker knows, and compares answers fairly."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from explorer.lessons.actions import WINDOWS
from explorer.lessons.fields import FIELDS
from explorer.lessons.places import PLACES
from tests.explorer.components.js_page import js_page, script

pytestmark = pytest.mark.browser

SETTINGS = {"temperature": 1, "top_k": 0, "top_p": 1, "min_p": 0, "repetition_penalty": 1}
STOP = {"use_end_ids": True, "max_new_tokens": 256, "stop_strings": []}
STATE = {
    "prompt": "abc", "mode": "raw", "sampling": SETTINGS, "stop": STOP, "seed": 0, "steps": 1, "forced": [],
    "afresh": False, "history": [[0, SETTINGS]],
}  # fmt: skip


def run(**changes: Any) -> dict[str, Any]:
    """A store in which `STATE` is reached, but for the changes."""
    step = {"forced": False, "sampling": SETTINGS, "reused_tokens": 0}
    made = {
        "hasRun": True, "newest": 1, "limits": {"new_tokens": 0},
        "steps": [{**step, "index": 0}, {**step, "index": 1}],
        "session": {"prompt": "abc", "mode": "raw"}, "settings": {"sampling": SETTINGS, "seed": 0, "stop": STOP},
    }  # fmt: skip
    return made | changes


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    names = {
        "fields.js": "LESSON_FIELDS", "places.js": "LESSON_PLACES", "lesson_answer.js": "typedNumber, isNear",
        "lesson_state.js": "fitsState", "lesson_text.js": "spanNodes", "tab_memory.js": "TabMemory",
        "lesson_progress.js": "keepProgress, readProgress",
    }  # fmt: skip
    opened = js_page(browser, names)
    yield opened
    opened.close()


def test_the_page_knows_every_value_and_place_that_the_checker_knows(page: Page):
    assert set(page.evaluate("LESSON_FIELDS")) == set(FIELDS)
    assert set(page.evaluate("Object.keys(LESSON_PLACES)")) == set(PLACES)
    assert all(f"  {name}:" in script("lesson_acts.js") for name in WINDOWS)


@pytest.mark.parametrize(
    ("typed", "number"),
    [
        ("12", 12),
        ("1,024", 1024),
        (" 46 % ", 0.46),
        ("230 kB", 230_000),
        ("0.5", 0.5),
        ("-3", -3),
        ("1e3", 1000),
        ("many", None),
    ],
)
def test_a_number_is_read_as_people_write_it(page: Page, typed: str, number: float | None):
    assert page.evaluate("(text) => typedNumber(text)", typed) == (number if number is None else pytest.approx(number))


def test_ten_percent_off_is_near_within_ten_percent_and_not_within_nine(page: Page):
    assert page.evaluate("[isNear(110, 100, 0.1), isNear(110, 100, 0.09), isNear(5, 5, 0)]") == [True, False, True]


WARM = SETTINGS | {"temperature": 2}
STRAYED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"newest": 0}, {}),
    ({"session": {"prompt": "abd", "mode": "raw"}}, {}),
    ({"session": {"prompt": "abc", "mode": "chat"}}, {}),
    ({"settings": {"sampling": WARM, "seed": 0, "stop": STOP}}, {}),
    ({"settings": {"sampling": SETTINGS, "seed": 1, "stop": STOP}}, {}),
    ({"settings": {"sampling": SETTINGS, "seed": 0, "stop": STOP | {"use_end_ids": False}}}, {}),
    ({}, {"forced": [1]}),
    ({}, {"history": [[0, SETTINGS], [1, WARM]]}),
    ({"hasRun": False}, {}),
]


def test_a_run_fits_a_scene_with_more_steps_too_and_strays_by_prompt_settings_or_tokens(page: Page):
    fits = "([store, state]) => fitsState(store, state)"
    assert page.evaluate(fits, [run(), STATE]) and page.evaluate(fits, [run(), STATE | {"steps": 0}])
    assert page.evaluate(fits, [run(hasRun=False), None])
    for changed, state in STRAYED:
        assert not page.evaluate(fits, [run(**changed), STATE | state]), (changed, state)


def test_a_prompt_that_is_to_be_read_afresh_must_not_have_been_copied(page: Page):
    copied = run(steps=[{"index": i, "forced": False, "sampling": SETTINGS, "reused_tokens": 3} for i in range(2)])
    fits = "([store, state]) => fitsState(store, state)"
    assert page.evaluate(fits, [copied, STATE]) and not page.evaluate(fits, [copied, STATE | {"afresh": True}])


def test_a_class_that_allows_fewer_tokens_still_fits(page: Page):
    bounded = run(
        limits={"new_tokens": 64}, settings={"sampling": SETTINGS, "seed": 0, "stop": STOP | {"max_new_tokens": 64}}
    )
    assert page.evaluate("([store, state]) => fitsState(store, state)", [bounded, STATE])


def test_text_that_looks_like_markup_stays_text_and_a_link_opens_beside(page: Page):
    spans = [{"text": "<img src=x onerror=alert(1)>"}, {"href": "https://example.org", "text": "<b>"}]
    html = page.evaluate(
        "(spans) => { const p = document.createElement('p'); p.append(...spanNodes(spans)); return p.innerHTML; }",
        spans,
    )
    assert html.startswith("&lt;img src=x onerror=alert(1)&gt;<a href=")
    assert html.endswith('target="_blank" rel="noopener noreferrer">&lt;b&gt;</a>')


def test_a_lesson_stands_in_the_address_beside_the_run_and_is_no_part_of_what_a_reload_asks_for(page: Page):
    found = page.evaluate(
        """() => {
            history.replaceState(null, '', '/?lesson=the-cat-sat&scene=4');
            const memory = new TabMemory();
            return [memory.lesson(), memory.greeting().session];
        }"""
    )
    assert found == [{"id": "the-cat-sat", "scene": 4}, None]
    page.evaluate("history.replaceState(null, '', '/')")


def test_progress_keeps_the_farthest_scene_and_once_done_stays_done(page: Page):
    page.evaluate("localStorage.clear()")
    page.evaluate("keepProgress('a', {scene: 5, of: 5, done: true}); keepProgress('a', {scene: 2, of: 5, done: false})")
    assert page.evaluate("readProgress()") == {"a": {"scene": 2, "most": 5, "of": 5, "done": True}}
    assert json.loads(page.evaluate("localStorage.getItem('loupe.lessons')"))["a"]["most"] == 5
