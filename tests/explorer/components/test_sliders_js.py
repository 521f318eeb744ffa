"""The sampling sliders under real key presses: every press is another value, from one end of the range to the other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.explorer.components.js_page import js_page

pytestmark = pytest.mark.browser

OFF = {"temperature": 1, "top_k": 0, "top_p": 1, "min_p": 0, "repetition_penalty": 1}
ENDS = {
    "temp": ("temperature", 0, 2, 200),
    "top-p": ("top_p", 0, 1, 100),
    "min-p": ("min_p", 0, 1, 190),  # 0 to 0.1 by 0.001, then by 0.01
    "penalty": ("repetition_penalty", 0.5, 2, 150),
}


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    opened = js_page(browser, {"sliders.js": "Sliders, sliderPlace"})
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def all_off(page: Page) -> None:
    """Five sliders, all off, over a vocabulary of 49,152."""
    page.evaluate(
        """(off) => {
            window.moves = [];
            document.body.replaceChildren();
            window.sliders = new Sliders(document.body, (sampling) => moves.push(sampling), () => {});
            sliders.set(off, 49152);
        }""",
        OFF,
    )


def values(page: Page, label: str, name: str, key: str, times: int) -> list[float]:
    """What a setting becomes, press by press."""
    page.locator(f"input[aria-label='{label}']").focus()
    page.evaluate("moves = []")
    for _ in range(times):
        page.keyboard.press(key)
    found: list[float] = page.evaluate(f"moves.map((sampling) => sampling.{name})")
    return found


@pytest.mark.parametrize("label", ENDS)
def test_arrow_keys_pass_every_value_from_end_to_end_also_over_off(page: Page, label: str):
    name, low, high, places = ENDS[label]
    values(page, label, name, "Home", 1)
    seen = values(page, label, name, "ArrowRight", places)
    assert len(seen) == places
    assert seen == sorted(set(seen)), "each press is a larger value"
    assert seen[-1] == high
    assert values(page, label, name, "ArrowLeft", 3) == seen[-2:-5:-1]
    assert (values(page, label, name, "Home", 1) or [low])[-1] == low


def test_top_k_falls_from_off_and_counts_one_by_one_where_it_is_small(page: Page):
    down = values(page, "top-k", "top_k", "ArrowLeft", 3)
    assert down == sorted(down, reverse=True)
    assert 0 < down[0] < 49_152
    assert values(page, "top-k", "top_k", "Home", 1) == [1]
    assert values(page, "top-k", "top_k", "ArrowRight", 5) == [2, 3, 4, 5, 6]
    assert values(page, "top-k", "top_k", "End", 1) == [0]


def test_a_value_from_elsewhere_stands_at_the_nearest_place(page: Page):
    place = "([listed, value]) => sliderPlace(listed, value)"
    assert page.evaluate(place, [[0, 0.5, 1], 0.7]) == 1
    assert page.evaluate(place, [[1, 2, 4, 0], 0]) == 3, "top-k 0 is off, at the right end"
