"""The real app with the bundled model on a loopback port, and a page that must stay free of errors."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.step_page import StepPage

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_MS = 60_000  # this may be a busy machine; what is waited for is a state, never a time
HARMLESS = ("ERR_NAME_NOT_RESOLVED", "ERR_INTERNET_DISCONNECTED", "favicon")  # Streamlit looks for its own site


@pytest.fixture(scope="session")
def app_url(bundled: object) -> Iterator[str]:
    """`streamlit run app.py` on a free port of 127.0.0.1; `bundled` has imported the model. Ended with the tests."""
    port = _free_port()
    command = [
        sys.executable,
        "-m",
        "streamlit",
        "run",
        "app.py",
        f"--server.port={port}",
        "--server.address=127.0.0.1",
    ]
    environment = {**os.environ, "LOUPE_MODEL": ""}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as app:
        try:
            _wait_until_healthy(f"http://127.0.0.1:{port}/_stcore/health", app)
            yield f"http://127.0.0.1:{port}"
        finally:
            app.terminate()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A tab of its own. Whatever it logs as an error fails the test."""
    expect.set_options(timeout=PATIENCE_MS)
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    made = context.new_page()
    made.set_default_timeout(PATIENCE_MS)
    errors: list[str] = []
    made.on("pageerror", lambda error: errors.append(str(error)))
    made.on("console", lambda message: message.type == "error" and errors.append(message.text))
    yield made
    found = [error for error in errors if not any(word in error for word in HARMLESS)]
    exceptions = made.locator("[data-testid=stException]").count()
    context.close()
    assert not found, found
    assert exceptions == 0


@pytest.fixture
def step_page(page: Page, app_url: str) -> StepPage:
    """The Step page, model loaded, nothing prefilled yet."""
    return StepPage(page, app_url).open()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_until_healthy(url: str, app: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        assert app.poll() is None, "the app ended before it was ready"
        try:
            with urllib.request.urlopen(url, timeout=2) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.2)
    pytest.fail("the app did not answer within two minutes")
