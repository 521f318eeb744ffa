"""Attention as lines: which weights are drawn, how thick, and from where to where."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.explorer.components.js_page import js_page

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    names = "attentionLines, clearLines, curveBetween, lineOpacity, lineWidth, linesLayer, strongestWeights"
    opened = js_page(browser, {"attention_lines.js": names})
    yield opened
    opened.close()


def test_the_strongest_weights_are_drawn_and_the_strongest_last(page: Page):
    assert page.evaluate("strongestWeights([0.1, 0.6, 0.003, 0.297], 2)") == [3, 1]
    assert page.evaluate("strongestWeights([0.1, 0.6, 0.003, 0.297])") == [0, 3, 1], "0.003 is less than a line"


def test_a_larger_weight_is_thicker_and_more_solid(page: Page):
    assert page.evaluate("[0, 0.5, 1].map(lineWidth)") == pytest.approx([0.8, 4.4, 8])
    assert page.evaluate("[0, 0.25, 1].map(lineOpacity)") == pytest.approx([0.28, 0.64, 1])


def test_a_curve_starts_at_the_one_chip_and_ends_at_the_other(page: Page):
    box = "({left, top, width: 20, height: 10})"
    curve = f"(a, b) => curveBetween(((left, top) => {box})(...a), ((left, top) => {box})(...b))"
    row: str = page.evaluate(f"({curve})([100, 0], [0, 0])")
    assert row.startswith("M110.0 11.0 C") and row.endswith(" 10.0 11.0"), "in one row: below both"
    wrapped: str = page.evaluate(f"({curve})([100, 40], [0, 0])")
    assert wrapped == "M110.0 40.0 C110.0 25.0 10.0 25.0 10.0 10.0", "from the upper edge to the row above"
    itself: str = page.evaluate(f"({curve})([0, 0], [0, 0])")
    assert itself.startswith("M3.3 11.0") and itself.endswith("16.7 11.0"), "a loop"


def test_lines_are_drawn_in_the_places_of_the_chips_and_catch_no_pointer(page: Page):
    drawn: dict[str, Any] = page.evaluate(
        """() => {
            const host = document.body.appendChild(document.createElement('div'));
            host.style.cssText = 'position: fixed; left: 30px; top: 50px; width: 300px; height: 40px';
            const layer = linesLayer(host);
            layer.style.cssText = 'position: absolute; inset: 0; pointer-events: none';
            const box = (left) => ({ left, top: 50, width: 20, height: 10 });
            const { paths, shown } = attentionLines(layer, box(130), [box(30), null, box(80)], [0.7, 0.1, 0.2]);
            const made = paths.map((path) => [path.dataset.weight, path.getAttribute('d').split(' ').slice(0, 2)]);
            const hit = document.elementFromPoint(100, 65) === host;
            clearLines(layer);
            return { made, shown, hit, hidden: layer.getAttribute('aria-hidden'), left: layer.childElementCount };
        }"""
    )
    assert drawn["made"] == [["0.2000", ["M110.0", "11.0"]], ["0.7000", ["M110.0", "11.0"]]]
    assert drawn["shown"] == pytest.approx(0.9), "the chip that is on no screen is not counted"
    assert drawn["hit"] and drawn["hidden"] == "true" and drawn["left"] == 0
