"""The race's picture is read with arrow keys: both times of a step, from the first to the last."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

pytestmark = pytest.mark.browser

SCRIPT = Path(__file__).resolve().parents[3] / "assets" / "labs" / "race_lanes.js"
WAYS = [{"name": name, "colour": "red", "of": 3, "ms": ms, "positions": 3} for name, ms in
        (("With", [50, 40, 1200]), ("Without", [51, 60, 70]))]  # fmt: skip
DATA = {"label": "Both", "step": "Step {step}:", "agreement": "the same", "prompt": "a", "drawn": "b", "ways": WAYS}


def test_arrow_keys_read_the_times_of_both_loops_step_by_step(browser: Browser):
    page = browser.new_page()
    page.set_content("<div id='host'><div class='lanes'></div></div>")
    page.add_script_tag(
        type="module", content=SCRIPT.read_text().replace("export default function", "window.draw = function")
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
    page.close()
