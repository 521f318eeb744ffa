"""The chart that a lab opens on: arrow keys read its values, and a table holds the same numbers."""

from __future__ import annotations

import csv
import io
import re
import xml.etree.ElementTree as ElementTree
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


def taken(page: Page, kind: str) -> bytes:
    """What the chart's menu saves."""
    page.locator(".take-away").click()
    with page.expect_download() as saved:
        page.locator(f"[data-kind={kind}]").click()
    return saved.value.path().read_bytes()


def test_a_chart_is_taken_away_as_it_is_drawn_also_while_its_table_is_shown(page: Page):
    read(page, LINES)
    page.locator(".lab-table-button").click()
    svg = ElementTree.fromstring(taken(page, "svg"))
    name = "{http://www.w3.org/2000/svg}"
    texts = [node.text for node in svg.iter(f"{name}text")]
    assert [text for text in texts if text in ("Roof", "0", "1")] == ["Roof", "0", "1", "0", "1"]
    assert len(list(svg.iter(f"{name}circle"))) == 1  # the point
    strokes = [node.get("stroke") for node in svg.iter(f"{name}path")]
    assert len(strokes) == 1  # the line, in a colour that every program knows
    assert str(strokes[0]).startswith("#")
    assert page.locator(".lab-table").count() == 1


def test_a_bar_chart_is_taken_away_with_the_lengths_of_its_bars(page: Page):
    read(page, BARS)
    svg = ElementTree.fromstring(taken(page, "svg"))
    # Bars are rounded at one end: an outline begins after its first corner, and its upper edge ends before the second.
    outlines = [node.get("d", "") for node in svg.iter("{http://www.w3.org/2000/svg}path")]
    edges = [re.findall(r"^M([\d.]+) [\d.]+H([\d.]+)a([\d.]+) .*a([\d.]+) [^a]*$", d)[0] for d in outlines]
    longest = [float(to) + float(right) - float(start) + float(left) for start, to, right, left in edges]
    assert longest[0] / longest[1] == pytest.approx(0.5 / 0.3, rel=0.01)
    rows = list(csv.reader(io.StringIO(taken(page, "csv").decode("utf-8-sig"))))
    assert rows == [
        ["where", "what", "value"],
        ["one", "", "16 GB"],
        ["one", "weights", "10 GB"],
        ["one", "cache", "6 GB"],
    ]
