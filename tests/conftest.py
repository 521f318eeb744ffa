"""What tests of every folder share: the bundled model, loaded once, and a browser that must be there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tools.browser import NoBrowser, require_browser

if TYPE_CHECKING:
    from engine.model_loader import LoadedModel


@pytest.fixture(scope="session")
def bundled() -> LoadedModel:
    """SmolLM2-135M-Instruct in float32 on CPU: imported once into the user's cache, loaded once per process.

    Mark tests that use it `slow`. It is shared, so a test that changes the model must put it back.
    """
    from engine.config import EngineConfig
    from engine.model_loader import load_model

    return load_model(EngineConfig(device="cpu", dtype="float32"))


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """Path of a Chromium for Playwright's `executable_path`; without one the test fails and says how to get it."""
    try:
        return require_browser()
    except NoBrowser as error:
        pytest.fail(str(error), pytrace=False)
