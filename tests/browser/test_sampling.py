"""The next token's panel in a real browser: what is tried on a step stands beside what was sampled, and no more."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.step_page import StepPage

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_what_is_tried_stands_beside_what_was_sampled_until_the_next_step(step_page: StepPage):
    step_page.prefilled("The cat sat").step(2)
    page, ids = step_page.page, step_page.ids
    u = step_page.store("store.selected.draw.u")
    first = page.locator(".lp-rows .lp-row").first
    sampled_at = first.locator(".lp-row-number").nth(1).inner_text()
    page.locator("[data-trial=again]").click()
    page.locator("[data-trial=hundred]").click()
    expect(page.locator(".lp-trials [role=status]")).to_contain_text("The run stays as it is.")
    counts = page.locator(".lp-rows .lp-row:not([hidden]) .lp-row-count, .lp-others .lp-row-count").all_inner_texts()
    assert sum(map(int, counts)) == 100
    step_page.slider("temp").focus()
    step_page.press("ArrowLeft", times=8)
    expect(page.locator(".lp-next")).to_have_attribute("data-showing", "exact")  # let go, and answered by the engine
    expect(page.locator(".lp-bars")).to_have_attribute("data-behind", "was")
    assert first.locator(".lp-row-number").nth(0).inner_text() == sampled_at
    assert first.locator(".lp-row-number").nth(1).inner_text() != sampled_at
    assert (step_page.ids, step_page.store("store.selected.draw.u")) == (ids, u)
    page.keyboard.press("Escape")
    step_page.slider("temp").blur()
    step_page.step()
    expect(page.locator(".lp-bars")).to_have_attribute("data-behind", "raw")
    expect(first.locator(".lp-row-count")).to_have_text("")
    assert step_page.ids[:-1] == ids
