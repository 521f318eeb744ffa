"""The race's picture is read with arrow keys: both times of a step, from the first to the last."""

from __future__ import annotations

import csv
import io
import xml.etree.ElementTree as ElementTree

import pytest
from playwright.sync_api import Browser, expect

from explorer.components.component_source import script_of

pytestmark = pytest.mark.browser

WAYS = [{"name": name, "colour": "red", "of": 3, "ms": ms, "positions": 3} for name, ms in
        (("With", [50, 40, 1200]), ("Without", [51, 60, 70]))]  # fmt: skip
DATA = {"label": "Both", "step": "Step {step}:", "agreement": "the same", "prompt": "a", "drawn": "b", "ways": WAYS}


def test_arrow_keys_read_the_times_of_both_loops_step_by_step(browser: Browser):
    page = browser.new_page()
    page.set_content("<div id='host'><div class='lanes'></div></div>")
    page.add_script_tag(
        type="module",
        content=script_of("labs/race_lanes.js").replace("export default function", "window.draw = function"),
    )
    page.wait_for_function("() => window.draw")
    page.evaluate("(data) => draw({ data, parentElement: document.querySelector('#host') })", DATA)
    lanes, said = page.locator(".lanes"), page.locator(".agreement")
    expect(said).to_have_text("the same")
    lanes.focus()
    for key, words in [
        ("ArrowRight", "Step 0: With: 50 ms · Without: 51 ms"),
        ("End", "Step 2: With: 1.20 s · Without: 70 ms"),
        ("ArrowRight", "Step 2: With: 1.20 s · Without: 70 ms"),
        ("ArrowLeft", "Step 1: With: 40 ms · Without: 60 ms"),
    ]:
        page.keyboard.press(key)
        expect(said).to_have_text(words)
    saved = {}
    for kind in ("svg", "csv"):
        page.locator(".take-away").click()
        with page.expect_download() as download:
            page.locator(f"[data-kind={kind}]").click()
        saved[kind] = download.value.path().read_bytes()
    bars = [node for node in ElementTree.fromstring(saved["svg"]).iter("{http://www.w3.org/2000/svg}rect")
            if node.get("fill") == "#ff0000"]  # fmt: skip
    assert len(bars) == 12  # three steps of two loops, in the bar and under it
    rows = list(csv.reader(io.StringIO(saved["csv"].decode("utf-8-sig"))))
    assert rows == [["step", "With, ms", "Without, ms"], ["0", "50", "51"], ["1", "40", "60"], ["2", "1200", "70"]]
    page.close()
