"""The chart that a lab opens on: arrow keys read its values, and a table holds the same numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from explorer.components.component_source import script_of
from explorer.components.lab_chart import STYLES

pytestmark = pytest.mark.browser

BARS = {
    "kind": "bars", "title": "Memory", "note": "", "alt": "Memory of one device", "legend": [],
    "rows": [
        {"name": "one", "detail": "", "said": "16 GB", "strong": False, "parts": [
            {"share": 0.5, "colour": "accent", "name": "weights", "words": "10 GB", "hollow": False},
            {"share": 0.3, "colour": "k", "name": "cache", "words": "6 GB", "hollow": False},
        ]},
    ],
}  # fmt: skip
AXIS = {"title": "", "ticks": [[0, "0"], [1, "1"]]}
LINES = {
    "kind": "lines", "title": "Roof", "note": "", "alt": "A roof", "legend": [], "x": AXIS, "y": AXIS, "levels": [],
    "lines": [{"name": "at most", "at": [[0, 0], [0.5, 1], [1, 1]], "words": ["1", "2", "2"], "wheres": ["a", "b", "c"],
               "colour": "accent", "dash": "solid", "wide": False}],
    "points": [{"name": "decode", "at": [0.25, 0.5], "words": "1.5", "colour": "k", "label": "", "hollow": False,
                "above": False}],
}  # fmt: skip


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    opened = browser.new_page(viewport={"width": 800, "height": 600})
    opened.set_content(f"<style>{STYLES}</style><div id='host' style='height: 400px; width: 700px'></div>")
    handed = script_of("labs/chart.js").replace("export default function labChart", "globalThis.labChart = function")
    opened.add_script_tag(type="module", content=f"{handed}\nglobalThis.isReady = true;")
    opened.wait_for_function("() => globalThis.isReady")
    yield opened
    opened.close()


def read(page: Page, data: Any, *keys: str) -> list[str]:
    """What is said after each key."""
    page.evaluate("(data) => labChart({data, parentElement: document.getElementById('host')})", data)
    page.locator(".lab-plot svg, .lab-bars").focus()
    said = []
    for key in keys:
        page.keyboard.press(key)
        said.append(page.locator(".lab-said").inner_text())
    return said


def test_arrow_keys_read_every_part_of_every_bar(page: Page):
    assert read(page, BARS, "ArrowRight", "ArrowRight", "ArrowRight", "Home") == [
        "one, weights, 10 GB",
        "one, cache, 6 GB",
        "one, cache, 6 GB",
        "one, weights, 10 GB",
    ]


def test_arrow_keys_read_lines_and_points_from_left_to_right(page: Page):
    assert read(page, LINES, "ArrowRight", "ArrowRight", "ArrowRight", "End", "ArrowLeft") == [
        "a, at most 1",
        "decode, 1.5",
        "b, at most 2",
        "c, at most 2",
        "b, at most 2",
    ]


@pytest.mark.parametrize(
    ("data", "rows"),
    [
        (BARS, [["one", "", "16 GB"], ["one", "weights", "10 GB"], ["one", "cache", "6 GB"]]),
        (LINES, [["", "decode", "1.5"], ["a", "at most", "1"], ["b", "at most", "2"], ["c", "at most", "2"]]),
    ],
)
def test_the_table_holds_the_same_numbers_and_gives_way_to_the_chart_again(
    page: Page, data: Any, rows: list[list[str]]
):
    read(page, data)
    page.locator(".lab-table-button").click()
    cells = "rows => rows.map((row) => [...row.cells].map((cell) => cell.textContent))"
    assert page.locator(".lab-table tbody tr").evaluate_all(cells) == rows
    assert page.locator(".lab-plot, .lab-bars").count() == 0
    page.locator(".lab-table-button").click()
    assert page.locator(".lab-plot, .lab-bars").count() == 1
