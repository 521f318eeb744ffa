"""The README's pictures and its recording, made from the real app: `python -m tests.browser.pictures`.

The recording is what the browser draws while the page is used, frame by frame with the browser's own times, as one
animated WebP picture: "The cat sat" step by step, once slowly, a hundred samples, another temperature, surprisal, play.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, CDPSession, Page, expect, sync_playwright

from benchmarks.app import running_app
from tests.browser.step_page import StepPage
from tools.browser import require_browser

DOCS = Path(__file__).resolve().parents[2] / "docs"
STILL = {"width": 1600, "height": 1080}
FILM = {"width": 1280, "height": 720}
FILM_S = 20
FILM_WIDTH = 960  # of the recording as saved
QUALITY = 60
LEAST_MS = 50  # a frame stays at least this long: what changes faster is not seen


@dataclass(slots=True)
class Film:
    """Frames as they came: (second, JPEG)."""

    frames: list[tuple[float, bytes]] = field(default_factory=list)

    def save(self, path: Path, seconds: float) -> None:
        """One animated picture that is `seconds` long and begins again."""
        shown = [self.frames[0]]
        for frame in self.frames[1:]:
            if (frame[0] - shown[-1][0]) * 1000 >= LEAST_MS:
                shown.append(frame)
        ends = [when for when, _ in shown[1:]] + [shown[0][0] + seconds]
        lasts = [round((end - when) * 1000) for (when, _), end in zip(shown, ends, strict=True)]
        pictures = [_small(jpeg) for _, jpeg in shown]
        pictures[0].save(
            path, save_all=True, append_images=pictures[1:], duration=lasts, loop=0, quality=QUALITY, method=4
        )


def main() -> None:
    """Make all of them anew."""
    expect.set_options(timeout=60_000)
    with running_app() as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=require_browser(), args=["--no-sandbox"])
        for theme in ("dark", "light"):
            with _opened(browser, url, STILL, theme) as step_page:
                step_page.step(7)
                step_page.page.wait_for_timeout(600)  # nothing is moving any more
                step_page.page.screenshot(path=DOCS / f"step-{theme}.png")
        with _opened(browser, url, STILL, "light") as step_page:
            step_page.open("/?lesson=the-cat-sat&scene=6")
            step_page.page.locator(".lesson-choice").last.click()
            step_page.page.wait_for_timeout(600)
            step_page.page.screenshot(path=DOCS / "lesson.png")
        with _opened(browser, url, FILM, "dark") as step_page:
            _filmed(step_page, _scene).save(DOCS / "a-run.webp", FILM_S)
        browser.close()


@contextmanager
def _opened(browser: Browser, url: str, size: Any, theme: Any) -> Iterator[StepPage]:
    """The Step page as it opens: with "The cat sat" prefilled."""
    context = browser.new_context(viewport=size, color_scheme=theme)
    step_page = StepPage(context.new_page(), url).open()
    yield step_page
    context.close()


def _filmed(step_page: StepPage, scene: Callable[[StepPage], None]) -> Film:
    """What the browser draws during the scene."""
    film, session = Film(), step_page.page.context.new_cdp_session(step_page.page)
    session.on("Page.screencastFrame", lambda frame: _keep(film, session, frame))
    session.send("Page.startScreencast", {"format": "jpeg", "quality": 85})
    scene(step_page)
    session.send("Page.stopScreencast")
    return film


def _keep(film: Film, session: CDPSession, frame: dict[str, Any]) -> None:
    film.frames.append((frame["metadata"]["timestamp"], base64.b64decode(frame["data"])))
    session.send("Page.screencastFrameAck", {"sessionId": frame["sessionId"]})


def _scene(step_page: StepPage) -> None:
    """Some twenty seconds: each act, and the time to see what it did."""
    page = step_page.page
    page.wait_for_timeout(2000)
    for _ in range(2):
        step_page.step()
        page.wait_for_timeout(1000)
    page.keyboard.press("Shift+Space")
    step_page.wait_for_steps(4)
    page.wait_for_timeout(1200)
    page.locator("[data-trial=hundred]").click()
    page.wait_for_timeout(1300)
    temperature = step_page.slider("temp")
    temperature.focus()
    _held(page, "ArrowLeft", 12)
    page.wait_for_timeout(1200)
    temperature.blur()
    page.locator(".surprisal-button").click()
    page.wait_for_timeout(1500)
    page.keyboard.press("p")
    page.wait_for_timeout(2200)
    page.keyboard.press("p")
    page.wait_for_timeout(500)


def _held(page: Page, key: str, times: int) -> None:
    for _ in range(times):
        page.keyboard.press(key)
        page.wait_for_timeout(45)


def _small(jpeg: bytes) -> Image.Image:
    picture = Image.open(io.BytesIO(jpeg)).convert("RGB")
    return picture.resize((FILM_WIDTH, round(picture.height * FILM_WIDTH / picture.width)), Image.Resampling.LANCZOS)


if __name__ == "__main__":
    main()
