"""Keys go to the run, but never those with which an input method puts a character together."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.explorer.components.js_page import js_page

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    opened = js_page(browser, {"keys.js": "listenToKeys"})
    opened.evaluate(
        """() => {
            globalThis.acts = [];
            const root = document.body.appendChild(document.createElement('div'));
            listenToKeys(root, { step: () => acts.push('step'), play: () => acts.push('play') });
        }"""
    )
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("event", "acts"),
    [
        ("{key: ' '}", ["step"]),
        ("{key: 'p'}", ["play"]),
        ("{key: ' ', isComposing: true}", []),
        ("{key: 'p', keyCode: 229}", []),
        ("{key: 'p', ctrlKey: true}", []),
    ],
)
def test_a_key_acts_unless_an_input_method_or_a_shortcut_has_it(page: Page, event: str, acts: list[str]):
    page.evaluate("acts.length = 0")
    page.evaluate(f"document.dispatchEvent(new KeyboardEvent('keydown', {event}))")
    assert page.evaluate("acts") == acts
