"""One app, several pages: a tab keeps its run over them, and a link to any page opens that page."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.step_page import StepPage

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def to_library(page: Page) -> None:
    page.get_by_text("Labs", exact=True).click()
    page.locator("a[href$='/kv-memory']").click()
    expect(page.get_by_role("heading", name="KV cache memory")).to_be_visible()


def back_to_step(page: Page) -> None:
    page.get_by_text("Step", exact=True).first.click()


def test_the_run_is_still_there_after_a_visit_to_a_lab(step_page: StepPage):
    step_page.preset("greedy").prefilled("The cat sat").step(2)
    ids, sid, link = step_page.ids, step_page.store("store.session.sid"), step_page.link(steps=2)
    to_library(step_page.page)
    assert step_page.page.url == step_page.url.rstrip("/") + "/kv-memory", "the run's link is not the lab's"
    expect(step_page.page.get_by_text("After step 2, 5 tokens are in it.")).to_be_visible()
    back_to_step(step_page.page)
    step_page.wait_for_steps(3)
    assert step_page.ids == ids
    assert step_page.store("store.session.sid") == sid
    expect(step_page.page).to_have_url(link)
    step_page.step()
    assert step_page.ids[:-1] == ids


def test_a_press_before_the_run_is_back_does_not_begin_another(step_page: StepPage):
    step_page.prefilled("Time flies").step(3)
    ids = step_page.ids
    to_library(step_page.page)
    back_to_step(step_page.page)
    for _ in range(5):
        step_page.press("Space")
        step_page.page.wait_for_timeout(20)
    expect(step_page.chips.nth(len(ids) - 1)).to_be_visible()
    step_page.page.wait_for_function("() => window.__loupe.line.idle")
    assert step_page.ids[: len(ids)] == ids


def test_a_visit_to_a_lab_keeps_the_line_and_what_was_asked_for_and_pauses_play(step_page: StepPage):
    page = step_page.page
    step_page.prefilled("The cat sat").press("Space", times=5)
    page.evaluate("() => { window.line = window.__loupe.line; }")
    to_library(page)
    page.wait_for_function("() => line.idle")
    assert step_page.store("store.steps.length") == 6
    back_to_step(page)
    step_page.wait_for_steps(6).press("p")
    page.wait_for_function("() => window.__loupe.steps.length > 7")
    to_library(page)
    page.wait_for_function("() => line.idle && !window.__loupe.play.on")
    assert page.evaluate("window.__loupe.line === line && line.state === 'open'")


def test_a_link_to_a_lab_opens_it_with_its_controls_and_loads_no_model(page: Page, app_url: str):
    page.goto(f"{app_url}/kv-memory?model=GPT-3+175B&ctx=2%2C048&on=another+amount&gb=640&w=fp16&kv=fp16&use=1")
    expect(page.get_by_role("heading", name="KV cache memory")).to_be_visible()
    headline = page.locator(".st-key-answer")
    expect(headline).to_contain_text("4.72 MB")
    expect(headline).to_contain_text("9.66 GB")
    expect(page.get_by_text("This part needs a run")).to_be_visible()
    assert page.evaluate("window.__loupe === undefined")


def test_a_control_that_is_moved_is_in_the_link_and_the_link_shows_it_again(page: Page, app_url: str, browser: Browser):
    page.goto(f"{app_url}/kv-memory")
    page.get_by_role("slider", name="Context, tokens").press("ArrowRight")
    expect(page.locator(".st-key-answer")).to_contain_text("16,384")
    assert page.url.endswith("ctx=16%2C384")
    context = browser.new_context()
    other = context.new_page()
    other.goto(page.url)
    expect(other.locator(".st-key-answer")).to_contain_text("16,384")
    context.close()


def test_a_run_begun_in_a_lab_is_on_the_step_page_and_survives_a_reload_of_the_lab(page: Page, app_url: str):
    page.goto(f"{app_url}/kv-memory")
    page.get_by_role("button", name="Prefill").click()
    expect(page.get_by_text("After step 0, 3 tokens are in it.")).to_be_visible()
    step_page = StepPage(page, app_url)
    back_to_step(page)
    step_page.wait_for_steps(1)
    sid = step_page.store("store.session.sid")
    to_library(page)
    page.reload()
    expect(page.get_by_text("After step 0, 3 tokens are in it.")).to_be_visible()
    back_to_step(page)
    step_page.wait_for_steps(1)
    assert step_page.store("store.session.sid") == sid


def test_changing_the_first_token_shows_which_keys_moved(page: Page, app_url: str):
    page.goto(f"{app_url}/kv-memory")
    page.get_by_role("button", name="Prefill").click()
    page.get_by_text("Do a token's key and value depend").click()
    page.get_by_role("button", name="in a copy").click()
    expect(page.get_by_text("Layer 0: all 2 later keys are the same to the last bit.")).to_be_visible()
    expect(page.get_by_text("every one of the 58 moved")).to_be_visible()  # 29 layers x 2 positions


def test_on_a_phone_the_menu_is_folded_and_nothing_is_wider_than_the_screen(browser: Browser, app_url: str):
    context = browser.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    page.goto(f"{app_url}/kv-memory")
    expect(page.locator(".st-key-answer")).to_be_visible()
    main = page.locator("[data-testid=stMain]")
    assert main.evaluate("(node) => node.scrollWidth <= node.clientWidth")
    page.get_by_test_id("stExpandSidebarButton").click()
    expect(page.locator("a[href$='/flash-attention']")).to_be_visible()
    context.close()


def test_a_chart_is_saved_as_a_picture_and_its_numbers_as_csv_under_its_own_name(page: Page, app_url: str):
    page.goto(f"{app_url}/kv-memory")
    expect(page.locator(".lab-chart[data-kind=lines]")).to_be_visible()
    assert not page.get_by_test_id("stPlotlyChart").count(), "what is folded is not drawn"
    page.get_by_text("How many sessions fit, with").click()
    chart = page.get_by_test_id("stPlotlyChart").first
    chart.hover()
    with page.expect_download() as picture:
        chart.locator("[data-title='Download plot as a PNG']").click()
    assert picture.value.suggested_filename == "loupe-sessions-that-fit.png"
    page.get_by_text("The numbers").first.click()
    with page.expect_download() as sheet:
        page.get_by_role("button", name="CSV").first.click()
    assert sheet.value.suggested_filename == "loupe-sessions-that-fit.csv"
    assert sheet.value.path().read_text().splitlines()[1].startswith("128,1667,")


@pytest.mark.parametrize(
    ("before", "now", "title"),
    [
        ("floor", "roofline", "Roofline"),
        ("library", "kv-memory", "KV cache memory"),
        ("claims", "fact-check", "Fact check"),
    ],
)
def test_an_address_of_before_leads_to_where_the_page_is_now_with_its_controls(page, app_url, before, now, title):
    page.goto(f"{app_url}/{before}?model=GPT-3+175B")
    expect(page.get_by_role("heading", level=1)).to_have_text(title)
    expect(page).to_have_url(re.compile(rf"/{now}\?model=GPT-3"))
