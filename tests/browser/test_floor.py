"""Each step on its floor, as a person sees it: measured on request, in the legend, the table and layer by layer."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.step_page import StepPage

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_steps_stand_on_their_floor_once_the_machine_was_measured(step_page: StepPage):
    step_page.preset("greedy").prefilled("The cat sat").step(3)
    page = step_page.page
    foot = page.locator(".lp-timing .lp-foot")
    foot.get_by_role("button", name="measure", exact=False).click()
    expect(foot.get_by_role("button", name="measure again")).to_be_enabled()
    expect(foot.locator(".lp-key", has_text="lower bound")).to_contain_text("× the lower bound")
    page.locator(".lp-timing .lp-table").click()
    rows = page.locator(".lp-timing .lp-twin tbody tr")
    expect(rows).to_have_count(4)
    expect(rows.nth(2)).to_contain_text("× the lower bound")
    step = step_page.store(
        "({floor: store.steps[2].floor, rate: store.machine.bytes_per_s, kv: store.steps[2].kv_bytes})"
    )
    assert step["floor"]["cache"] == step["kv"] == 5 * 46_080
    assert step["floor"]["weights"] == 4 * 134_515_008
    assert step["rate"] > 1e8


def test_a_step_tells_its_layers_and_the_run_goes_on_unmoved(step_page: StepPage):
    step_page.preset("greedy").prefilled("The cat sat").step(2)
    step_page.page.locator(".lp-timing .lp-foot").get_by_role("button", name="per layer").click()
    rows = step_page.page.locator(".layer-row")
    expect(rows).to_have_count(32)  # the embedding, thirty layers, norm and head
    expect(rows.last).to_contain_text("norm and head")
    step_page.page.keyboard.press("Escape")
    expect(step_page.page.locator("dialog.sheet-layers")).to_have_count(0)
    for wanted in (4, 5, 6):
        step_page.act("step").wait_for_steps(wanted)
    assert step_page.text == "The cat sat on a cliff, and the"
