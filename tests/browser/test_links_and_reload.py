"""A session is a recipe: a reload resumes it, a link repeats it, and no link hands it over."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.step_page import StepPage

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_a_reload_resumes_the_session(step_page: StepPage):
    step_page.preset("chat defaults").prefilled("The cat sat").step(4)
    ids = step_page.ids
    step_page.page.reload()
    step_page.wait_for_steps(5)
    assert step_page.ids == ids
    step_page.step()
    assert step_page.ids[:-1] == ids


def test_a_link_opened_elsewhere_gives_the_same_tokens_and_its_own_session(
    step_page: StepPage, browser: Browser, app_url: str
):
    step_page.preset("chat defaults").prefilled("Time flies").step(5)
    link, ids = step_page.link(steps=5), step_page.ids
    assert "prompt=" in link
    assert step_page.store("store.session.sid") not in link
    context = browser.new_context()
    other = StepPage(context.new_page(), app_url)
    other.page.goto(link)
    other.wait_for_steps(6)
    assert other.ids == ids
    assert other.store("store.session.sid") != step_page.store("store.session.sid")
    other.step()
    assert step_page.ids == ids
    context.close()


def test_a_link_with_a_forced_token_repeats_it(step_page: StepPage, browser: Browser, app_url: str):
    step_page.preset("greedy").prefilled("The cat sat").step()
    step_page.store("store.send('force', { step: 1, token_id: 1000 })")
    expect(step_page.chips.last).to_have_attribute("data-role", "forced")
    step_page.step(2)
    context = browser.new_context()
    other = StepPage(context.new_page(), app_url)
    other.page.goto(step_page.link(steps=3))
    other.wait_for_steps(4)
    assert other.ids == step_page.ids
    assert other.roles[-3] == "forced"
    context.close()


def test_a_malformed_link_says_so_and_the_page_works(page: Page, app_url: str):
    step_page = StepPage(page, app_url).open("/?prompt=Hello&temperature=hot&step=banana")
    expect(page.locator(".prompt-row")).to_contain_text("hot")
    step_page.page.locator("button.prefill").click()
    step_page.wait_for_steps(1)


def test_a_second_tab_with_the_same_storage_gets_a_copy_not_the_session(step_page: StepPage, app_url: str):
    step_page.prefilled("The cat sat").step(2)
    saved = step_page.page.evaluate("Object.entries(sessionStorage)")
    twin = step_page.page.context.new_page()
    twin.add_init_script(f"for (const [k, v] of {saved!r}) sessionStorage.setItem(k, v)")
    other = StepPage(twin, app_url)
    twin.goto(app_url)
    other.wait_for_steps(3)
    other.step(2)
    assert step_page.steps == 3
    assert other.store("store.session.sid") != step_page.store("store.session.sid")
