"""What a stranger's link can do to whoever opens it: ask, and no more."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from tests.browser.step_page import StepPage

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CONFIG = {
    "model_type": "https://evil.example/x www.evil.example a@evil.example",
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "vocab_size": 100,
}


def test_a_link_with_another_model_asks_and_can_be_followed_without_it(page: Page, app_url: str):
    step_page = StepPage(page, app_url).open("?prompt=The+cat+sat&steps=2&model=somebody/some-model")
    question = page.locator(".link-question")
    expect(question).to_contain_text("This link asks for another model: somebody/some-model.")
    expect(page.locator(".link-load")).to_have_text("Load somebody/some-model")
    expect(page.locator(".prompt-box")).to_have_value("The cat sat")
    page.locator(".link-without").click()
    step_page.wait_for_steps(3)
    expect(question).to_be_hidden()


def test_a_link_fetches_no_config_before_somebody_says_so(page: Page, app_url: str):
    page.goto(f"{app_url}/kv-memory?from=from+the+Hub&hub=somebody/some-model")
    expect(page.get_by_text("The config.json of somebody/some-model is not here.")).to_be_visible()
    expect(page.get_by_role("button", name="Fetch it")).to_be_visible()


def test_an_address_in_a_config_is_text(page: Page, app_url: str):
    page.goto(f"{app_url}/kv-memory?from=a+config&config={quote(json.dumps(CONFIG))}")
    expect(page.get_by_text("is not known here: read like a Llama").first).to_be_visible()
    assert page.locator("a[href*=evil], a[href^=mailto]").count() == 0


def test_a_link_to_a_number_that_is_none_opens_the_page_and_says_so(page: Page, app_url: str):
    page.goto(f"{app_url}/prefill-decode?cl=1e999&cs=1e999")
    for name in ("cl", "cs"):
        expect(page.get_by_text(f"The link asks for {name} = 1e999.")).to_be_visible()
