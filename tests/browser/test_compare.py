"""Two branches side by side: what each gave to the other's token, how far apart they are, and both stepped at once."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.step_page import StepPage

pytestmark = [pytest.mark.slow, pytest.mark.browser]


def test_two_branches_are_compared_from_where_they_part_and_stepped_together(step_page: StepPage):
    page, root = step_page.open().step(3).page, step_page.root
    step_page.press("ArrowLeft").press("ArrowLeft").act("fork")
    expect(root).to_have_attribute("data-steps", "2")
    page.locator(".way").first.click()  # another seed
    expect(page.locator(".transport-note")).to_contain_text("goes on with seed")
    step_page.step(2)
    page.locator("[data-act=branches]").click()
    tree = page.locator(".branch-tree")
    expect(tree.locator("g")).to_have_count(2)
    expect(tree.locator("[data-branch='2']")).to_have_class("is-current")
    page.locator(".compare-with").click()
    sheet = page.locator(".compare-sheet")
    expect(sheet).to_have_attribute("data-step", "3")
    page.locator(".compare-step").fill("1")
    expect(sheet).to_have_attribute("data-step", "1")
    expect(page.locator(".compare-fact").first).to_contain_text("Both went on with")
    expect(page.locator(".compare-fact[data-kl=raw]")).to_contain_text(
        "0.00 bits"
    )  # the same tokens before: the same row
    page.locator(".compare-both").click()
    expect(sheet).to_have_attribute("data-step", "4")
    expect(page.locator(".compare-together")).to_have_text("Both shared one forward pass.")
    chips = page.locator(".compare-chip[data-drawn=true]")
    expect(chips).to_have_count(2)
    facts = page.locator(".compare-fact").all_inner_texts()
    assert re.search(r"Branch 2 went on with .* p = .*Branch 1 gave that token", facts[0]) or "Both" in facts[0]
    page.keyboard.press("Escape")
    page.locator("[data-act=branches]").click()
    tree.locator("[data-branch='1']").focus()
    page.keyboard.press("Enter")
    expect(root).to_have_attribute("data-steps", "5")
    expect(page.locator(".chip").nth(3)).to_contain_text("on")
