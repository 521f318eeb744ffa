"""The tiles lab and the claims as a person uses them: scrubbing without the server, and links that show the same."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.step_page import StepPage

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_tiles_are_scrubbed_in_the_browser_and_the_link_keeps_the_place(step_page: StepPage):
    step_page.preset("greedy").prefilled("The cat sat").step(3)
    page = step_page.page
    page.goto(f"{step_page.url}/flash-attention?layer=12&head=5&size=2")
    walk = page.locator(".tile-walk")
    expect(walk).to_have_attribute("data-tiles", "3")  # three prompt tokens and three fed, two a tile
    expect(walk).to_have_attribute("data-tile", "1")
    page.locator(".tile-walk input[type=range]").focus()
    page.keyboard.press("End")
    expect(walk).to_have_attribute("data-tile", "3")
    expect(page.locator(".tile-words")).to_contain_text("Tile 3 holds 2 keys, 4 to 5.")
    off = page.locator(".tile-stat", has_text="furthest from exact").locator("b").inner_text()
    assert float(off.replace("−", "-")) < 1e-4
    expect(page).to_have_url(re.compile(r"[?&]tile=3"))
    page.reload()
    expect(walk).to_have_attribute("data-tile", "3")


def test_a_claim_opens_its_link_shows_it_alone_and_its_run_says_what_was_measured(step_page: StepPage):
    page = step_page.page
    page.goto(f"{step_page.url}/fact-check?topic=What+the+cache+holds")
    line = page.locator(".st-key-match_kv-depend-on-the-token-alone")
    line.locator("summary").click()
    line.get_by_role("link", name="Link").click()
    claim = page.locator(".st-key-claim_kv-depend-on-the-token-alone")
    expect(page.locator(".st-key-all_claims button")).to_be_visible()
    expect(page).to_have_url(re.compile(r"[?&]claim=kv-depend-on-the-token-alone$"))
    claim.get_by_role("button", name="Run it on the loaded model").click()
    expect(claim).to_contain_text("Did not hold here.")
    expect(claim).to_contain_text("in 1 of 30 layers")
