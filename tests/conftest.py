"""What tests of every folder share: the bundled model, loaded once, and a browser that must be there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Browser, sync_playwright

from tools.browser import NoBrowser, require_browser

if TYPE_CHECKING:
    from engine.models.loader import LoadedModel

QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)  # a sandboxed machine refuses what Chromium asks of the outside


@pytest.fixture(scope="session")
def bundled() -> LoadedModel:
    """SmolLM2-135M-Instruct in float32 on CPU: imported once into the user's cache, loaded once per process.

    Mark tests that use it `slow`. It is shared, so a test that changes the model must put it back.
    """
    from engine.config import EngineConfig
    from engine.models.loader import load_model

    return load_model(EngineConfig(device="cpu", dtype="float32"))


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """Path of a Chromium for Playwright's `executable_path`; without one the test fails and says how to get it."""
    try:
        return require_browser()
    except NoBrowser as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture(scope="session")
def browser(chromium_path: str) -> Iterator[Browser]:
    """One headless Chromium for every test that wants a page."""
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=chromium_path, args=list(QUIET))
        yield made
        made.close()
