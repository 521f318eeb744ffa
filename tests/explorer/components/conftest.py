"""What tests of the page's scripts share: the store and its line in a real browser, on a socket that a test holds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.explorer.components.live_tab import LiveTab, live_page


@pytest.fixture(scope="module")
def store_page(browser: Browser) -> Iterator[Page]:
    """One page for the tests of a file; each gets a tab of its own in it."""
    opened = live_page(browser)
    yield opened
    opened.close()


@pytest.fixture
def tab(store_page: Page) -> LiveTab:
    """A tab that has said nothing yet, at the Step page's own address."""
    store_page.evaluate("history.replaceState(null, '', '/')")
    return LiveTab(store_page)
