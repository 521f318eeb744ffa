"""Presenter's mode: the tokens, the loop and one panel on a big screen, and the way out."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.step_page import StepPage

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PANELS = {"1": "kv", "2": "attention", "3": "next", "4": "timing", "5": "memory"}
OUTSIDE = """(loupe) => {
  const card = loupe.querySelector('.card.is-presented');
  const [page, panel] = [loupe, card].map((node) => node.getBoundingClientRect());
  const shown = [...loupe.querySelectorAll('.page *')].filter((n) => n.checkVisibility() && !n.closest('canvas'));
  const isOut = (node, box) => {
    const { width, right, bottom } = node.getBoundingClientRect();
    return width > 0 && (right > box.right + 1 || bottom > box.bottom + 1);
  };
  return shown.filter((n) => isOut(n, page) || (card.contains(n) && isOut(n, panel))).map((n) => n.className);
}"""
DRAWN_PIXELS = """(canvas) => new Promise((done) => {
  const read = () => done(parseFloat(canvas.getContext('2d').font));
  requestAnimationFrame(() => requestAnimationFrame(read)); // what has just come into view is drawn by then
})"""
PIXELS = "(node) => parseFloat(getComputedStyle(node).fontSize)"


def pixels(step_page: StepPage, selector: str) -> float:
    size: float = step_page.page.locator(selector).first.evaluate(PIXELS)
    return size


def outside(step_page: StepPage) -> Any:
    """What sticks out of the view or of its panel."""
    return step_page.root.evaluate(OUTSIDE)


def test_each_panel_fits_the_screen_in_type_that_is_read_from_the_back_row(step_page: StepPage):
    step_page.prefilled("The cat sat").step(2).press("b")
    for width, height, body in ((1280, 720, 21.3), (1920, 1080, 32)):
        step_page.page.set_viewport_size({"width": width, "height": height})
        for key, name in PANELS.items():
            step_page.press(key)
            expect(step_page.page.locator(".card:visible")).to_have_class(
                f"card panel-{name} lp-panel lp-{name} is-presented"
            )
            assert outside(step_page) == [], f"{name} at {width} by {height}"
        assert step_page.root.evaluate("(loupe) => loupe.scrollHeight - loupe.clientHeight") == 0
        assert pixels(step_page, ".page") == pytest.approx(body, abs=0.1)
        assert pixels(step_page, ".chip-text") == pytest.approx(1.4 * body, abs=0.1)
    table = step_page.press("3").page.locator(".panel-next .lp-table")
    table.click()
    expect(step_page.page.locator(".panel-next .twin")).to_be_visible()
    expect(step_page.page.locator(".panel-next .lp-bars")).to_be_hidden()
    table.click()
    step_page.press("1")
    label = step_page.page.locator(".panel-kv canvas").evaluate(DRAWN_PIXELS)
    assert label == pytest.approx(0.88 * 32, abs=0.1), "what is drawn grows with what is written"


def test_the_run_goes_on_under_the_same_keys_and_escape_brings_the_page_back(step_page: StepPage):
    step_page.prefilled("The cat sat").press("2")
    assert step_page.root.get_attribute("data-presents") is None, "a number is nothing on the whole page"
    step_page.page.locator(".present-button").click()
    expect(step_page.page.locator(".stage-said")).to_have_text(
        "Big screen: Next token. Keys 1 to 5 choose the panel, Esc leaves."
    )
    newest = step_page.chips.last
    step_page.step(14)
    expect(newest).to_be_in_viewport(ratio=1)
    step_page.press("Escape").press("b")
    expect(newest).to_be_in_viewport(ratio=1)
    step_page.press("ArrowLeft").wait_for_selected(13).press("2")
    expect(step_page.page.locator(".stage-panel[aria-pressed=true]")).to_have_text("2Attention")
    menu = step_page.page.get_by_test_id("stHeader")
    expect(menu).to_be_hidden()
    step_page.page.locator(".station[data-station=stop]").click()
    step_page.press("Escape")
    assert step_page.root.get_attribute("data-presents") == "attention", "what is open closes first"
    step_page.press("Escape")
    expect(menu).to_be_visible()
    expect(step_page.page.locator(".card:visible")).to_have_count(5)


def test_whoever_came_by_keyboard_keeps_the_focus_in_sight(step_page: StepPage):
    step_page.prefilled("The cat sat")
    step_page.page.locator(".present-button").focus()
    step_page.press("Enter")
    expect(step_page.page.locator(".stage-leave")).to_be_focused()
    step_page.press("Enter")
    expect(step_page.page.locator(".present-button")).to_be_focused()
