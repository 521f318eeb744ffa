"""One step, slowly: what waits for which beat, how long it takes, how it ends. The clock is the test's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.explorer.components.js_page import js_page
from tests.explorer.components.live_tab import FAKE_SOCKET, LiveTab, done, run

pytestmark = pytest.mark.browser

# A page of four parts: one that shows at once, two that two of the beats tell, and one that waits for the end.
PAGE = """() => {
  document.body.innerHTML = '<div class="loupe"><div class="place"></div></div>';
  globalThis.root = document.querySelector('.loupe');
  globalThis.drawn = [];
  globalThis.parts = Object.fromEntries(['top', 'cache', 'next', 'time'].map((name) => [name, {
    draw: (changes) => drawn.push([name, store.newest, changes.has('steps')]),
  }]));
  globalThis.slow?.destroy();
  globalThis.slow = new SlowStep(root, store, {
    place: document.querySelector('.place'),
    beats: [
      { name: 'cache', ms: 1000, begin: (step) => { slow.tell(parts.cache); return `step ${step.index} goes in`; } },
      { name: 'next', ms: 2000, begin: () => 'logits',
        then: { at: 0.5, run: () => { slow.tell(parts.next); return 'chosen'; } } },
    ],
    on: {
      draw: (part, changes) => part.draw(changes),
      end: () => drawn.push('end'),
      over: () => drawn.push('over'),
    },
  });
  slow.held = new Set([parts.cache, parts.next, parts.time]);
  store.addEventListener('change', ({ detail }) => {
    slow.watch();
    for (const part of Object.values(parts)) if (!slow.keeps(part, detail)) part.draw(detail);
  });
}"""


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    opened = js_page(browser, {"store.js": "Store", "slow_step.js": "SlowStep", "turn_beats.js": "TurnBeats"})
    opened.clock.install(time=0)
    opened.clock.pause_at(1_000)
    opened.evaluate(FAKE_SOCKET)
    yield opened
    opened.close()


class SlowTab(LiveTab):
    """A tab whose page shows steps slowly, one step into a run."""

    def ask(self) -> None:
        """Shift and Space; the step has not come yet."""
        self.send("step")
        self.now("slow.expect()")
        self.drawn()

    def come(self, steps: int) -> None:
        self.take(**run(steps, since=steps - 1), answers=[done(steps - 1)])

    def drawn(self) -> list[Any]:
        found: list[Any] = self.now("drawn.splice(0)")
        return found

    @property
    def beat(self) -> tuple[str | None, str]:
        """Its name, and its sentence where one is on screen."""
        words = "document.querySelector('.turn-said:not([hidden]) [role=status]')?.textContent ?? ''"
        name, sentence = self.now(f"[root.dataset.beat ?? null, {words}]")
        return name, sentence


@pytest.fixture
def tab(page: Page) -> SlowTab:
    page.emulate_media(reduced_motion="no-preference")
    made = SlowTab(page)
    made.begin(1)
    page.evaluate(PAGE)
    made.ask()
    return made


OLD, NEW = 0, 1  # number of the newest step


def test_each_part_learns_of_the_step_at_its_beat_and_the_rest_at_the_end(tab: SlowTab):
    tab.come(2)
    assert tab.drawn() == [["top", NEW, True]], "only what gives nothing away"
    assert tab.beat == ("cache", ""), "a lesson that looks now must not take the step for shown"
    tab.wait(0)
    assert tab.beat == ("cache", "step 1 goes in")
    assert tab.drawn() == [["cache", NEW, True]]
    tab.wait(1000)
    assert tab.beat == ("next", "logits")
    assert tab.drawn() == []
    tab.wait(1000)
    assert tab.beat == ("next", "chosen")
    assert tab.drawn() == [["next", NEW, True]]
    tab.wait(999)
    assert tab.drawn() == []
    tab.wait(1)
    assert tab.drawn() == ["end", ["time", NEW, True], "over"]
    assert tab.beat == (None, "")
    tab.wait(4_000)
    assert tab.drawn() == [], "nothing lingers"


@pytest.mark.parametrize("act", ["pointerdown", "keydown"])
def test_a_key_and_a_press_end_it_at_once_with_everything_in_its_place(tab: SlowTab, act: str):
    tab.come(2)
    tab.wait(500)
    tab.drawn()
    tab.now(f"window.dispatchEvent(new Event('{act}'))" if act == "pointerdown" else "0")
    if act == "keydown":
        tab.page.keyboard.press("Shift")
        assert tab.beat[0] == "cache", "Shift alone is no key"
        tab.page.keyboard.press("x")
    assert tab.drawn() == ["end", ["next", NEW, True], ["time", NEW, True], "over"]
    tab.wait(4_000)
    assert tab.drawn() == []


def test_a_step_that_comes_meanwhile_ends_it(tab: SlowTab):
    tab.send("step")
    tab.come(2)
    tab.wait(500)
    tab.come(3)
    assert tab.beat == (None, "")
    assert [entry for entry in tab.drawn() if entry[0] == "time"][-1] == ["time", 2, True]


def test_a_step_that_nobody_asked_to_see_slowly_is_shown_at_once(tab: SlowTab):
    tab.now("slow.forget()")
    tab.come(2)
    assert [entry[0] for entry in tab.drawn()] == ["top", "cache", "next", "time"]
    assert tab.beat == (None, "")


def test_it_waits_for_its_own_step_behind_others_that_were_asked_for_before(tab: SlowTab):
    tab.send("step")
    tab.now("slow.expect()")
    tab.come(2)
    assert ["time", 1, True] in tab.drawn()
    tab.come(3)
    tab.wait(0)
    assert tab.beat == ("cache", "step 2 goes in")


def test_with_less_motion_the_beats_are_stills_that_a_key_or_the_button_leads_through(tab: SlowTab):
    tab.page.emulate_media(reduced_motion="reduce")
    tab.come(2)
    tab.wait(60_000)
    assert tab.beat == ("cache", "step 1 goes in"), "no clock moves it on"
    tab.page.keyboard.press("Space")
    assert tab.beat == ("next", "chosen")
    tab.page.locator(".turn-next").click()
    assert tab.beat == (None, "")


def test_the_five_beats_take_between_five_and_six_seconds(page: Page):
    LiveTab(page)
    beats = page.evaluate("new TurnBeats(document.body, store, {}, {}).list.map(({ name, ms }) => [name, ms])")
    assert [name for name, _ in beats] == ["in", "layers", "cache", "attention", "sample"]
    assert 5000 <= sum(ms for _, ms in beats) <= 6000
