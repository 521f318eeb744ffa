"""Every lesson of the project, played on the bundled model from its first scene to its last, as a reader would."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from explorer.lessons.lesson import Lesson, Scene
from explorer.lessons.shelf import SHELF
from tests.browser.step_page import StepPage

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LESSONS = [shelved.id for shelved in SHELF.all() if shelved.is_own]


class LessonOnPage:
    """The lesson beside the panels."""

    def __init__(self, page: Page, lesson: Lesson) -> None:
        self.page = page
        self.lesson = lesson
        self.rail = page.locator(".lesson")

    def open(self, url: str, scene: int = 1) -> LessonOnPage:
        StepPage(self.page, url).open(f"/?lesson={self.lesson.id}&scene={scene}")
        return self

    def at(self, scene: int) -> Scene:
        """Wait for a scene to be there and the run to be where it needs it."""
        expect(self.rail).to_have_attribute("data-scene", str(scene))
        expect(self.rail).to_have_attribute("data-waiting", "false")
        expect(self.rail.locator(".lesson-note")).to_be_hidden()
        return self.lesson.scenes[scene - 1]

    def complete(self, scene: Scene) -> None:
        """Do what the scene asks for."""
        if scene.ask:
            self._answer(scene)
        elif scene.you:
            self.close_what_covers()
            if self.rail.get_attribute("data-complete") == "false":
                self.rail.locator(".lesson-do").click()
            if scene.you.act == "slow":
                self._watch_to_the_end()
        expect(self.rail).to_have_attribute("data-complete", "true")
        expect(self.rail).to_have_attribute("data-waiting", "false")

    def _watch_to_the_end(self) -> None:
        """One still after the other: the scene is complete behind the last, and the run has not strayed meanwhile."""
        after = self.page.locator(".turn-next")
        for beat in ("in", "layers", "cache", "attention", "sample"):
            expect(self.page.locator(f".loupe[data-beat={beat}]")).to_be_attached()
            expect(self.rail).to_have_attribute("data-complete", "false")
            expect(self.rail.locator(".lesson-note")).to_be_hidden()
            after.click()
        soon = 5_000  # ms; anything that happens on the page later would draw the lesson again
        expect(self.rail).to_have_attribute("data-complete", "true", timeout=soon)

    def _answer(self, scene: Scene) -> None:
        assert scene.ask is not None
        if scene.ask.kind == "choose":
            right = next(i for i, choice in enumerate(scene.ask.choices) if choice.right)
            self.rail.locator(".lesson-choice").nth((right + 1) % len(scene.ask.choices)).click()
            expect(self.rail.locator(".lesson-verdict")).to_have_attribute("data-right", "false")
            self.rail.locator(".lesson-choice").nth(right).click()
        elif scene.ask.kind == "guess":
            self.rail.locator(".lesson-form input").fill(" the")
            self.page.keyboard.press("Enter")
        else:
            self.rail.locator(".lesson-form input").fill("-77")
            self.page.keyboard.press("Enter")
            expect(self.rail.locator(".lesson-verdict")).to_have_attribute("data-right", "false")
            show = self.rail.locator(".lesson-show")
            if show.count():
                show.click()

    def close_what_covers(self) -> None:
        """A sheet lies over the lesson; it is closed as a reader would."""
        if self.page.locator("dialog.sheet[open]").count():
            self.page.keyboard.press("Escape")

    def has_every_value(self) -> None:
        """No value of what is said is missing."""
        for value in self.rail.locator(".lesson-value:visible").all():
            expect(value, f"{value.get_attribute('data-value')} of “{self.lesson.title}”").not_to_have_text("…")


@pytest.mark.parametrize("name", [*LESSONS, "tour"])
def test_a_lesson_plays_from_start_to_end_with_every_value_there(page: Page, app_url: str, name: str) -> None:
    page.emulate_media(reduced_motion="reduce")
    lesson = SHELF.lesson(name)
    on_page = LessonOnPage(page, lesson).open(app_url)
    for number in range(1, len(lesson.scenes) + 1):
        scene = on_page.at(number)
        if scene.show:
            expect(page.locator(".is-spotlit").first).to_be_attached()
        on_page.complete(scene)
        on_page.has_every_value()
        on_page.close_what_covers()
        page.keyboard.press("PageDown")
    expect(on_page.rail).to_have_attribute("data-scene", "end")
    expect(on_page.rail.locator(".lesson-title")).to_contain_text(lesson.title)


def test_a_link_leads_to_a_scene_with_its_run_a_reload_goes_on_and_leaving_keeps_the_run(
    page: Page, app_url: str
) -> None:
    lesson = SHELF.lesson("the-cat-sat")
    on_page = LessonOnPage(page, lesson).open(app_url, scene=6)
    on_page.at(6)
    steps = StepPage(page, app_url)
    shown = steps.shown("steps")
    assert int(shown) >= 2
    page.keyboard.press("PageUp")
    expect(page).to_have_url(re.compile(r"lesson=the-cat-sat&scene=5"))
    page.reload()
    on_page.at(5)
    assert steps.shown("steps") == shown
    on_page.rail.locator(".lesson-leave").click()
    expect(on_page.rail).to_be_hidden()
    expect(page).not_to_have_url(re.compile("lesson="))
    assert steps.shown("steps") == shown


def test_a_wrong_turn_is_said_and_the_way_back_brings_the_run_where_the_scene_needs_it(
    page: Page, app_url: str
) -> None:
    lesson = SHELF.lesson("the-cat-sat")
    on_page = LessonOnPage(page, lesson).open(app_url, scene=2)
    on_page.at(2)
    StepPage(page, app_url).prefilled("Something else entirely")
    expect(on_page.rail.locator(".lesson-note")).to_contain_text("not where this scene needs it")
    on_page.rail.locator(".lesson-return").click()
    on_page.at(2)
    assert page.locator(".prompt-box").input_value() == "The cat sat"


@pytest.mark.parametrize(("size", "presents"), [((1280, 720), True), ((390, 844), False)])
def test_a_lesson_fits_the_big_screen_and_a_phone_without_covering_the_buttons(
    page: Page, app_url: str, size: tuple[int, int], presents: bool
) -> None:
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.emulate_media(reduced_motion="reduce")
    on_page = LessonOnPage(page, SHELF.lesson("the-cat-sat")).open(app_url, scene=6)
    scene = on_page.at(6)
    if presents:
        page.keyboard.press("b")
        expect(page.locator(".panel-kv")).to_be_visible()
        expect(page.locator(".panel-next")).to_be_hidden()
    on_page.complete(scene)
    rail, bar = on_page.rail.bounding_box(), page.locator(".transport").bounding_box()
    assert rail is not None and bar is not None
    assert rail["y"] >= 0 and rail["y"] + rail["height"] <= bar["y"] + 2
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    on_page.rail.locator(".lesson-next").click()
    on_page.at(7)
