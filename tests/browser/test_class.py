"""A class in real browsers: what a student shares, and what the host sees of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from benchmarks.app import started
from tests.browser.step_page import StepPage
from tests.browser.test_accessibility import eventually_none, violations

pytestmark = [pytest.mark.browser, pytest.mark.slow]

KEY = "correct-horse-battery"
HOSTILE = "<b>bold</b> *starred* $x$ :red[no]"


@pytest.fixture(scope="module")
def class_url(bundled: object) -> Iterator[str]:
    """A class of the bundled model, with a page for its host."""
    hosted = {"LOUPE_MODE": "hosted", "LOUPE_HOST_KEY": KEY, "LOUPE_MODEL": ""}
    with started(("-m", "streamlit", "run", "app.py"), hosted) as app:
        yield app.url


def host_page(browser: Browser, url: str) -> Page:
    page = browser.new_page()
    page.goto(f"{url}/class")
    page.get_by_label("Key").fill(KEY)
    page.get_by_role("button", name="Show the class").click()
    page.get_by_text("Shared with you").wait_for()
    return page


def test_the_host_reads_what_a_student_shares_as_text_only_while_it_is_shared_on_a_page_without_a_serious_fault(
    page: Page, browser: Browser, class_url: str
):
    student = StepPage(page, class_url).open().prefilled(HOSTILE)
    host = host_page(browser, class_url)
    expect(host.get_by_text("Nobody shares a text just now")).to_be_visible()
    assert eventually_none(lambda: violations(host)) == [], "in either theme"
    switch = page.locator(".share-switch")
    expect(switch).to_have_attribute("aria-checked", "false")
    switch.click()
    expect(switch).to_have_attribute("aria-checked", "true")
    expect(switch).to_contain_text("host can read this")
    expect(host.get_by_text(HOSTILE, exact=True)).to_be_visible()
    student.step()
    expect(host.get_by_text("2 steps")).to_be_visible()
    switch.click()
    expect(switch).to_have_attribute("aria-checked", "false")
    expect(host.get_by_text(HOSTILE, exact=True)).to_have_count(0)
    host.close()
