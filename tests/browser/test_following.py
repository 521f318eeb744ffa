"""A class follows: the leader's steps and looks come to another screen, which can leave with a copy and return."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.step_page import StepPage

pytestmark = [pytest.mark.slow, pytest.mark.browser]


@pytest.fixture
def other(browser: Browser) -> Iterator[Page]:
    """A tab in another browser, with nothing in common."""
    context = browser.new_context(viewport={"width": 390, "height": 844})
    yield context.new_page()
    context.close()


def test_a_follower_answers_sees_steps_and_looks_changes_nothing_leaves_with_a_copy_and_returns(
    step_page: StepPage, other: Page
):
    leader = step_page.open().step(2).page
    leader.locator(".lead-button").click()
    leader.locator(".lead-begin").click()
    link = leader.locator(".lead-link").inner_text()
    assert leader.locator(".lead-qr path").get_attribute("d")
    other.goto(link)
    screen = other.locator(".loupe")
    expect(screen).to_have_attribute("data-follows", "")
    leader.locator(".ask-next").click()
    other.locator(".answer-form input").fill("mat")
    other.locator(".answer-form button").click()
    expect(leader.locator(".answer-row")).to_have_attribute("data-answer", "mat")
    expect(other.locator(".answer-row")).to_have_count(0)
    leader.locator(".ask-reveal").click()
    expect(other.locator(".answer-row")).to_have_attribute("data-answer", "mat")
    leader.locator(".ask-close").click()
    leader.keyboard.press("Escape")
    expect(screen).to_have_attribute("data-steps", "3")
    expect(leader.locator(".lead-button")).to_have_attribute("data-followers", "1")
    step_page.step().press("ArrowLeft").press("b").press("2")
    expect(screen).to_have_attribute("data-steps", "4")
    expect(screen).to_have_attribute("data-step", "2")
    expect(screen).to_have_attribute("data-presents", "attention")
    leader.keyboard.press("Escape")
    expect(screen).not_to_have_attribute("data-presents", "attention")
    other.keyboard.press("Space")
    expect(other.locator(".transport-note")).to_contain_text("only its leader changes it")
    other.locator(".leave-class").click()
    expect(screen).not_to_have_attribute("data-follows", "")
    expect(screen).to_have_attribute("data-steps", "4")
    other.keyboard.press("Space")
    expect(screen).to_have_attribute("data-steps", "5")
    assert step_page.steps == 4
    other.reload()
    expect(screen).to_have_attribute("data-steps", "5")
    other.locator(".return-to-class").click()
    expect(screen).to_have_attribute("data-steps", "4")
    leader.locator(".lead-button").click()
    leader.locator(".lead-end").click()
    expect(other.locator(".follow-bar")).to_have_attribute("data-state", "ended")
