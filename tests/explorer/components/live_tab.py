"""One tab of the Step page without panels: its store, a WebSocket in the test's hands, a clock that stands still."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page

from tests.explorer.components.js_page import frame, js_page

FAKE_SOCKET = Path(__file__).with_name("fake_socket.js").read_text(encoding="utf-8")
OWNER = "a secret of the tab"
REACHED = {
    "store.js": "Store",
    "play_loop.js": "PlayLoop",
    "line_state.js": "LineState",
    "prompt.js": "PromptRow",
    "first_screen.js": "FirstScreen",
    "prefill_note.js": "prefillWords",
}
RUN = {"sid": "secret", "branch": 1, "prompt": "The cat sat", "mode": "raw", "recipe": {"version": 1}, "url": ""}


def live_page(browser: Browser) -> Page:
    """A page with the store's scripts, whose timers run only when a test says so."""
    page = js_page(browser, REACHED)
    page.clock.install(time=0)
    page.clock.pause_at(1_000)
    page.evaluate(FAKE_SOCKET)
    return page


def records(count: int) -> list[dict[str, Any]]:
    return [{"index": i, "input_ids": [7], "kv_len": 3 + i, "log_sum_exp": i / 8, "planes": {}} for i in range(count)]


class LiveTab:
    """One store, and the server's side of its line by hand."""

    def __init__(self, page: Page, *, keeps_storage: bool = False) -> None:
        self.page = page
        self._frames = itertools.count(1)
        page.evaluate(
            """(keeps) => {
                if (!keeps) sessionStorage.clear();
                globalThis.store?.line.end('');
                sockets.length = 0;
                globalThis.store = new Store();
                globalThis.settled = [];
                Math.random = () => 0.5; // a pause is as long as its middle
            }""",
            keeps_storage,
        )

    # --- the page -----------------------------------------------------------------------------------------

    def open(self, owner: str = OWNER) -> dict[str, Any]:
        """Connect; returns the opening."""
        self.page.evaluate("(owner) => store.line.open(owner)", owner)
        return self.accept()

    def send(self, op: str, *, times: int = 1, **args: Any) -> None:
        """Commands; what becomes of each is in `settled`."""
        self.page.evaluate(
            """([op, args, times]) => {
                const settled = globalThis.settled;
                for (; times > 0; times -= 1)
                    store.send(op, args).then((value) => settled.push(value), (error) => settled.push(error.kind));
            }""",
            [op, args, times],
        )

    def settled(self) -> list[Any]:
        found: list[Any] = self.page.evaluate("settled.splice(0)")
        return found

    def now(self, expression: str) -> Any:
        return self.page.evaluate(expression)

    def wait(self, ms: int) -> None:
        self.page.clock.run_for(ms)

    # --- the server ---------------------------------------------------------------------------------------

    def accept(self) -> dict[str, Any]:
        self._frames = itertools.count(1)
        self.page.evaluate("accept()")
        return self.said()[0]

    def take(self, **header: Any) -> None:
        """The next frame."""
        self.page.evaluate("take", frame(frame=next(self._frames), **header))

    def begin(self, steps: int, **header: Any) -> None:
        """Connected, and a run on screen."""
        self.open()
        self.take(how="new", **run(steps), **header)

    def cut(self, code: int = 1006, reason: str = "") -> None:
        self.page.evaluate("([code, reason]) => cut(code, reason)", [code, reason])

    def said(self) -> list[Any]:
        """All that the newest connection was told."""
        found: list[Any] = self.page.evaluate("sockets.at(-1).said")
        return found

    @property
    def connections(self) -> int:
        count: int = self.page.evaluate("sockets.length")
        return count

    @property
    def state(self) -> str:
        found: str = self.page.evaluate("store.line.state")
        return found


def run(steps: int, *, since: int = 0, epoch: int = 1, **more: Any) -> dict[str, Any]:
    """The parts of a header that tell of a run of so many steps, those from `since` on with their records."""
    return {
        "session": {**RUN, "epoch": epoch},
        "steps": records(steps)[since:],
        "steps_from": since,
        "tokens": [],
        **more,
    }


def done(n: int, op: str = "step", **value: Any) -> dict[str, Any]:
    return {"n": n, "op": op, "ok": True, "value": value}
