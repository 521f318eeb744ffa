"""The browser's store without a server: what waits is done or said, what a tab keeps stays, records have names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.explorer.components.js_page import frame, js_page

pytestmark = pytest.mark.browser

RUN = {"sid": "secret", "branch": 1, "prompt": "The cat sat", "mode": "raw", "recipe": {"version": 1}, "url": ""}
SET_UP = """() => {
    sessionStorage.clear();
    window.said = [];
    window.store = new Store();
    window.open = () => { window.mountName = store.mount((name, value) => said.push(structuredClone(value))); };
    window.take = (text) => store.receive(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)));
    open();
}"""


class Tab:
    """One store, and the server's side of it by hand."""

    def __init__(self, page: Page) -> None:
        self.page = page
        page.evaluate(SET_UP)

    def take(self, ack: int, steps: int | None, answers: list[dict[str, Any]] | None = None, epoch: int = 1) -> None:
        """A frame: commands done up to `ack`, and a run of so many steps, or none."""
        records = [
            {"index": i, "input_ids": [7], "kv_len": 3 + i, "log_sum_exp": i / 8, "planes": {}}
            for i in range(steps or 0)
        ]
        session = (
            {"session": {**RUN, "epoch": epoch}, "steps": records, "steps_from": 0, "tokens": []}
            if steps
            else {"session": None}
        )
        mount = self.page.evaluate("mountName")
        self.page.evaluate("take", frame(mount=mount, ack=ack, answers=answers or [], busy=None, **session))

    def waiting(self) -> list[str]:
        """Commands in the log as last said."""
        names: list[str] = self.page.evaluate("said.at(-1).cmds.map(({ op }) => op)")
        return names

    def begin(self, steps: int) -> None:
        """Greeted, and a run on screen."""
        self.take(1, steps, [hello("new")])

    def press(self, times: int) -> None:
        self.page.evaluate("(n) => { for (; n > 0; n -= 1) store.send('step', {}).catch(() => {}); }", times)

    def leave_and_come_back(self) -> None:
        self.page.evaluate("() => { store.unmount(mountName); open(); }")


def hello(how: str, n: int = 1) -> dict[str, Any]:
    return {"n": n, "op": "hello", "ok": True, "value": {"how": how}}


def refused(n: int, kind: str, op: str = "hello") -> dict[str, Any]:
    return {"n": n, "op": op, "ok": False, "error": {"kind": kind, "message": f"{kind}, in words"}}


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    opened = js_page(browser, {"store.js": "Store"})
    yield opened
    opened.close()


@pytest.fixture
def tab(page: Page) -> Tab:
    return Tab(page)


def test_presses_that_waited_when_the_server_was_restarted_are_made_once_the_run_is_rebuilt(tab: Tab):
    tab.begin(2)
    tab.press(3)
    tab.leave_and_come_back()
    assert tab.waiting() == ["hello"]
    tab.take(1, 2, [hello("rebuilt")], epoch=2)
    assert tab.waiting() == ["step"] * 3


def test_of_presses_that_may_have_been_made_the_missing_ones_are_counted_in_words(tab: Tab):
    tab.begin(2)
    tab.press(3)
    tab.leave_and_come_back()
    tab.take(1, 3, [hello("resumed")])  # the server got to one of them
    assert tab.waiting() == ["hello"], "nothing is repeated that may have been done"
    assert tab.page.evaluate("store.notice").startswith("2 steps asked for before this page was left were not made.")


def test_presses_told_that_their_tab_is_gone_are_made_again_for_whoever_waits(tab: Tab):
    tab.begin(2)
    tab.page.evaluate(
        """() => {
            window.answers = {};
            store.send('step', {}).then((value) => (answers.step = value));
            store.send('attention', { step: 1 }).catch((error) => (answers.look = error.kind));
        }"""
    )
    tab.take(3, None, [refused(2, "Forgotten", "step"), refused(3, "Forgotten", "attention")])
    tab.take(4, 2, [hello("rebuilt", 4)], epoch=2)
    assert tab.waiting() == ["step"], "a look is asked for again by whoever looks"
    tab.take(5, 3, [{"n": 5, "op": "step", "ok": True, "value": {"step": 2}}], epoch=2)
    assert tab.page.evaluate("answers") == {"look": "Lost", "step": {"step": 2}}


def test_leaving_while_the_greeting_is_unanswered_keeps_the_run(tab: Tab):
    tab.begin(2)
    tab.leave_and_come_back()
    tab.leave_and_come_back()
    greeting = tab.page.evaluate("said.at(-1).cmds[0]")
    assert (greeting["sid"], greeting["recipe"]) == ("secret", {"version": 1})
    assert tab.page.evaluate("store.notice") == ""


@pytest.mark.parametrize(("kind", "is_kept"), [("NoPlace", True), ("EngineFault", True), ("BadCommand", False)])
def test_only_a_recipe_that_cannot_be_read_is_forgotten(tab: Tab, kind: str, is_kept: bool):
    tab.begin(2)
    tab.leave_and_come_back()
    tab.take(1, None, [refused(1, kind)])
    assert (tab.page.evaluate("sessionStorage.getItem('loupe.session')") is not None) == is_kept
    assert tab.page.evaluate("store.notice") == f"{kind}, in words"


def test_a_record_that_came_again_has_its_name_and_another_row_of_logits_has_not(tab: Tab):
    tab.begin(3)
    before = tab.page.evaluate("() => { window.old = store.selected; return store.keyOf(old); }")
    tab.take(1, 3, epoch=2)
    assert tab.page.evaluate("store.selected !== old && store.keyOf(store.selected)") == before
    assert tab.page.evaluate("store.keyOf({ ...store.selected, log_sum_exp: 9 })") != before
