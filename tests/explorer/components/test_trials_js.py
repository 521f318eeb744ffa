"""Samples that are only tried: which token a number picks, how often a hundred do, and where their dots lie."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.explorer.components.js_page import js_page

pytestmark = pytest.mark.browser

SEGMENTS = "drawSegments([7, 8, 9], [0.5, 0.125, 0.25])"  # 1/8 is left for everybody else
VIEW = """(extra) => ({
    ids: [7, 8, 9], raw: [0.5, 0.25, 0.125], probs: [0.25, 0.5, 0.125], kept: 3, vocabulary: 10, stage: 'temperature 2',
    stageShort: 'final', isLast: true, was: null, counts: null,
    draw: {token_id: 7, mode: 'inverse_cdf', final_prob: 0.5, raw_prob: 0.5, raw_rank: 1},
    pieces: new Map([7, 8, 9].map((id) => [id, {id, text: `t${id}`, parts: [{kind: 'text', text: `t${id}`}]}])),
    ...extra,
})"""


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    names = "drawSegments, withDrawn, segmentAt, sampleCounts, seededNumbers"
    opened = js_page(browser, {"segments.js": names, "bars.js": "BarList", "trials.js": "Trials"})
    yield opened
    opened.close()


def test_tokens_share_the_interval_by_falling_probability_and_the_rest_comes_last(page: Page):
    assert page.evaluate(SEGMENTS) == [
        {"id": 7, "low": 0, "high": 0.5},
        {"id": 9, "low": 0.5, "high": 0.75},
        {"id": 8, "low": 0.75, "high": 0.875},
        {"id": None, "low": 0.875, "high": 1},
    ]


@pytest.mark.parametrize(("u", "token"), [(0, 7), (0.4999, 7), (0.5, 9), (0.75, 8), (0.875, None), (0.9999, None)])
def test_a_number_picks_the_token_whose_share_it_falls_into(page: Page, u: float, token: int | None):
    assert page.evaluate(f"segmentAt({SEGMENTS}, {u}).id") == token


def test_the_sampled_token_has_its_own_share_also_where_it_is_no_candidate(page: Page):
    shares = page.evaluate(f"withDrawn({SEGMENTS}, {{drawn_id: 42, low: 0.9, high: 0.95}})")
    assert [(one["id"], one["low"], one["high"]) for one in shares[3:]] == [
        (None, 0.875, 0.9),
        (42, 0.9, 0.95),
        (None, 0.95, 1),
    ]
    assert page.evaluate(f"withDrawn({SEGMENTS}, {{drawn_id: 9, low: 0.5, high: 0.75}}).length") == 4


def mulberry32(seed: int, count: int) -> list[float]:
    """The published generator, in Python's unbounded integers."""
    numbers = []
    for _ in range(count):
        seed = (seed + 0x6D2B79F5) % 2**32
        t = (seed ^ seed >> 15) * (seed | 1) % 2**32
        t ^= (t + (t ^ t >> 7) * (t | 61)) % 2**32
        numbers.append(((t ^ t >> 14) % 2**32) / 2**32)
    return numbers


@pytest.mark.parametrize("seed", [0, 1, 2**31, -5])
def test_seeded_numbers_are_those_of_mulberry32(page: Page, seed: int):
    assert list(page.evaluate(f"Array.from(seededNumbers({seed}, 100))")) == mulberry32(seed % 2**32, 100)


def test_a_hundred_samples_are_counted_by_token(page: Page):
    numbers = mulberry32(3, 100)
    counts = dict(page.evaluate(f"[...sampleCounts({SEGMENTS}, seededNumbers(3, 100))]"))
    assert counts[7] == sum(u < 0.5 for u in numbers)
    assert counts[9] == sum(0.5 <= u < 0.75 for u in numbers)
    assert counts[8] == sum(0.75 <= u < 0.875 for u in numbers)
    assert counts[None] == sum(u >= 0.875 for u in numbers)


def drawn(page: Page, extra: str = "{}") -> list[dict[str, Any]]:
    """The rows of a bar list: token, back and final numbers, sizes of the bars, samples, and how far the dots reach."""
    return page.evaluate(
        f"""() => {{
            const root = document.body.appendChild(document.createElement('div'));
            const list = new BarList(root, () => {{}}, () => {{}});
            list.draw(({VIEW})({extra}));
            const rows = [...root.querySelectorAll('.lp-rows .lp-row:not([hidden]), .lp-others')].map((row) => ({{
                numbers: [...row.querySelectorAll('.lp-row-number')].map((node) => node.textContent),
                bars: ['raw', 'final'].map((name) => row.querySelector(`.lp-row-${{name}}`).style.transform),
                samples: row.querySelector('.lp-row-count').textContent,
                dots: parseFloat(row.querySelector('.lp-row-dots').style.width), title: row.title,
            }}));
            list.destroy();
            root.remove();
            return rows;
        }}"""
    )


def test_behind_the_bars_stands_the_raw_probability(page: Page):
    first = drawn(page)[0]
    assert first["numbers"] == ["0.500", "0.250"]
    assert first["bars"] == ["scaleX(1)", "scaleX(0.5)"]
    assert first["samples"] == ""


def test_while_settings_are_tried_the_probability_it_was_sampled_with_stands_behind(page: Page):
    first, second, third, others = drawn(page, "{was: [0.75, 0.125]}")
    assert first["numbers"] == ["0.750", "0.250"]
    assert second["bars"] == ["scaleX(0.1667)", "scaleX(0.6667)"]  # of 0.75, the largest
    assert third["numbers"][0] == "–", "what the record does not hold is not made up"
    assert others["numbers"] == ["0.125", "cut"]
    assert "as it was sampled 0.750" in first["title"]


def test_as_many_dots_as_expected_end_where_the_bar_ends(page: Page):
    rows = drawn(page, "{counts: new Map([[7, 25], [8, 40], [null, 30], [42, 5]])}")
    assert [row["samples"] for row in rows] == ["25", "40", "0", "35"]
    assert rows[0]["dots"] == 50  # percent of the track: 25 of 100, and the longest bar is 0.5
    assert rows[0]["bars"][1] == "scaleX(0.5)"
    assert rows[1]["dots"] == 80
    assert "25 of 100 samples, 25.0 expected" in rows[0]["title"]


def test_samples_stay_while_a_slider_moves_and_go_with_the_step(page: Page):
    found = page.evaluate(
        """() => {
            const root = document.createElement('div');
            const trials = new Trials(root, () => {});
            const press = (name) => root.querySelector(`[data-trial=${name}]`).click();
            const state = () => [trials.u !== null, trials.numbers && Array.from(trials.numbers.slice(0, 2))];
            trials.keepFor('mine/0/3/7');
            press('again');
            press('hundred');
            const first = state();
            trials.keepFor('mine/0/3/7');
            const same = state();
            press('hundred');
            const second = state();
            trials.keepFor('mine/0/4/8');
            const next = state();
            trials.keepFor('theirs/0/3/7');
            press('hundred');
            return {first, same, second, next, theirs: state()};
        }"""
    )
    assert found["first"] == found["same"]
    assert found["second"][1] != found["first"][1], "another press, other numbers"
    assert found["next"] == [False, None]
    assert found["theirs"][1] == found["first"][1], "the same step shows the same samples to everybody"
