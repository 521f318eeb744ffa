"""Find a Chromium for the browser tests, and install one where none is found.

A missing browser fails the tests; it never skips them, because a skipped test reads as a passed one.
Standard library alone: the set-up runs this before the packages are known to work.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
HOW_TO_INSTALL = (
    "No Chromium found for the browser tests. Install one:\n"
    "  Debian, Ubuntu   apt-get install chromium\n"
    "  elsewhere        .venv/bin/python -m playwright install chromium\n"
    "or point to yours: LOUPE_CHROMIUM=/path/to/chromium make test"
)


class NoBrowser(RuntimeError):
    """No Chromium on this machine; the message says how to get one."""


def find_browser() -> str | None:
    """Path of a Chromium: LOUPE_CHROMIUM, then the usual names on PATH, then Playwright's own."""
    named = os.environ.get("LOUPE_CHROMIUM")
    if named:
        return shutil.which(named)
    on_path = (shutil.which(name) for name in NAMES)
    return next((path for path in on_path if path), None) or _playwrights_own()


def require_browser() -> str:
    path = find_browser()
    if path is None:
        raise NoBrowser(HOW_TO_INSTALL)
    return path


def ensure_browser(python: Path) -> None:
    """Install a Chromium where there is none. Failing is left to the browser tests, which say what to do."""
    if find_browser() or os.environ.get("LOUPE_CHROMIUM"):
        return
    if shutil.which("apt-get") and hasattr(os, "geteuid") and os.geteuid() == 0:
        print("Installing Chromium for the browser tests (apt-get)", flush=True)
        subprocess.run(["apt-get", "update", "-qq"], stdout=subprocess.DEVNULL)
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        command = ["apt-get", "install", "-y", "-qq", "chromium"]  # with its recommended fonts: no font, no text
        subprocess.run(command, stdout=subprocess.DEVNULL, env=environment)
    if not find_browser():
        print("Installing Playwright's Chromium for the browser tests", flush=True)
        subprocess.run([str(python), "-m", "playwright", "install", "chromium"])
    if not find_browser():
        print(HOW_TO_INSTALL, file=sys.stderr, flush=True)


def _playwrights_own() -> str | None:
    folder = os.environ.get("PLAYWRIGHT_BROWSERS_PATH")
    usual = [Path.home() / ".cache/ms-playwright", Path.home() / "Library/Caches/ms-playwright"]
    homes = [Path(folder)] if folder else usual
    patterns = ("chromium-*/chrome-linux*/chrome", "chromium-*/chrome-mac*/*.app/Contents/MacOS/*")
    found = (path for home in homes for pattern in patterns for path in sorted(home.glob(pattern), reverse=True))
    return next((str(path) for path in found if os.access(path, os.X_OK)), None)
