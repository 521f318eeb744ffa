"""The real app with the bundled model on a loopback port, and a page that must stay free of errors."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect

from benchmarks.app import running_app
from tests.browser.step_page import StepPage

PATIENCE_MS = 60_000  # this may be a busy machine; what is waited for is a state, never a time
PROBED = re.compile(r"://[^/]+/[\w-]+/_stcore/")  # on a page's own address Streamlit first looks for a server there
HARMLESS = ("ERR_NAME_NOT_RESOLVED", "ERR_INTERNET_DISCONNECTED", "favicon")  # Streamlit looks for its own site


@pytest.fixture(scope="session")
def app_url(bundled: object) -> Iterator[str]:
    """`streamlit run app.py` on a free port of 127.0.0.1; `bundled` has imported the model. Ended with the tests."""
    with running_app() as url:
        yield url


@pytest.fixture(scope="session")
def window(browser: Browser) -> Iterator[BrowserContext]:
    """Where tabs are opened: what one of them has loaded, the next has in its cache."""
    made = browser.new_context(viewport={"width": 1280, "height": 720})
    yield made
    made.close()


@pytest.fixture
def page(window: BrowserContext) -> Iterator[Page]:
    """A tab of its own, with nothing kept by those before. Whatever it logs as an error fails the test."""
    expect.set_options(timeout=PATIENCE_MS)
    made = window.new_page()
    made.set_default_timeout(PATIENCE_MS)
    errors: list[str] = []
    made.on("pageerror", lambda error: errors.append(str(error)))
    made.on("console", lambda message: message.type == "error" and errors.append(_said(message)))
    yield made
    found = [error for error in errors if not any(word in error for word in HARMLESS) and not PROBED.search(error)]
    exceptions = made.locator("[data-testid=stException]").count()
    made.evaluate("localStorage.clear()")
    for opened in window.pages:
        opened.close()
    window.clear_cookies()
    assert not found, found
    assert exceptions == 0


def _said(message: ConsoleMessage) -> str:
    """A console message, and what it is about."""
    return f"{message.text} {message.location.get('url', '')}"


@pytest.fixture
def step_page(page: Page, app_url: str) -> StepPage:
    """The Step page with its model loaded, and the run that the page begins by itself."""
    return StepPage(page, app_url).open()
