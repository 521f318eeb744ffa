"""The live line breaks between a real page and the real app: nothing is lost, done twice or covered."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, WebSocketRoute, expect

from tests.browser.step_page import StepPage

pytestmark = [pytest.mark.browser, pytest.mark.slow]


class Cable:
    """The way from the page to the server, which a test can pull."""

    def __init__(self, page: Page) -> None:
        self.is_plugged = True
        self._newest: WebSocketRoute | None = None
        page.route_web_socket("**/live-line", self._on_line)

    def _on_line(self, line: WebSocketRoute) -> None:
        self._newest = line
        if self.is_plugged:
            line.connect_to_server()
        else:
            line.close(code=1011)

    def pull(self) -> None:
        assert self._newest is not None, "the page has no line yet"
        self.is_plugged = False
        self._newest.close(code=1011)


def test_over_a_lost_connection_steps_can_be_looked_at_and_presses_are_made_when_it_is_back(page: Page, app_url: str):
    cable = Cable(page)
    step_page = StepPage(page, app_url).open().preset("greedy").prefilled("The cat sat").step(3)
    panels = page.locator(".panels").bounding_box()
    cable.pull()
    expect(step_page.root).to_have_attribute("data-line", "lost")
    expect(page.locator(".line-bar")).to_contain_text("Connection lost. Trying again")
    expect(page.locator(".line-card")).to_be_hidden()
    assert page.locator(".panels").bounding_box() == panels, "nothing moves"
    step_page.press("Space", times=2)
    expect(page.locator(".waiting-count")).to_have_text("2")
    step_page.press("Home").wait_for_selected(0).press("End")
    cable.is_plugged = True
    step_page.wait_for_steps(6)
    expect(page.locator(".line-bar")).to_be_hidden()
    assert step_page.ids[:5] == [504, 2644, 2643, 335, 253]
    assert step_page.store("store.steps.map((step) => step.index)") == list(range(6))
