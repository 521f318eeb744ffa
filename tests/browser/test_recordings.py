"""A run is saved, opened, gone on with; and the saved page plays it from a file, with nobody to ask."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from explorer.recordings.shipped import SHIPPED
from explorer.recordings.single_page import page_of
from tests.browser.step_page import StepPage

pytestmark = [pytest.mark.slow, pytest.mark.browser]

PANELS = ("kv", "attention", "next", "timing", "memory")
NEEDS_A_MODEL = "[data-act=fork], [data-act=force], .prompt-box, .checks-badge"


@pytest.fixture(scope="module")
def saved_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording that ships, as one HTML file."""
    made = tmp_path_factory.mktemp("page") / "cat.html"
    made.write_text(page_of(SHIPPED[0].file.read_bytes(), title=SHIPPED[0].prompt), encoding="utf-8")
    return made


@pytest.fixture
def player(browser: Browser, saved_page: Path) -> Iterator[Page]:
    """The file in a tab of its own, offline. Whatever it asks for or logs fails the test."""
    context = browser.new_context(
        viewport={"width": 1280, "height": 720}, color_scheme="dark", offline=True, reduced_motion="reduce"
    )
    made = context.new_page()
    faults: list[str] = []
    made.on("pageerror", lambda error: faults.append(str(error)))
    made.on("console", lambda message: message.type == "error" and faults.append(message.text))
    made.on("request", lambda asked: asked.url.startswith(("file:", "blob:", "data:")) or faults.append(asked.url))
    made.goto(saved_page.as_uri())
    expect(made.locator(".loupe")).to_have_attribute("data-steps", "12")
    yield made
    context.close()
    assert not faults, faults


def test_the_saved_page_plays_every_panel_by_keys_and_pointer_without_a_server(player: Page):
    root = player.locator(".loupe")
    for key in ["ArrowRight", "ArrowRight", "Space", "ArrowLeft"]:
        player.keyboard.press(key)
    expect(root).to_have_attribute("data-step", "2")
    player.locator(".scrubber").fill("7")
    expect(root).to_have_attribute("data-step", "7")
    expect(player.locator(".station[data-station=in]")).to_contain_text("majestic")
    player.locator(".panel-attention [role=grid]").first.focus()
    player.keyboard.press("ArrowRight")
    expect(player.locator(".panel-attention")).to_contain_text("query head 1")
    for name in PANELS:
        player.locator(f".panel-{name} button", has_text="table").first.click()
        table = player.locator(f".panel-{name} table")
        expect(table).to_be_visible()
        assert table.locator("tr").count() > 1, name
        player.locator(f".panel-{name} button[aria-pressed=true]", has_text="table").first.click()
    expect(player.locator(".panel-next [data-chosen=true]")).to_contain_text("beauty")
    player.keyboard.press("End")
    player.keyboard.press("p")  # from the last step it begins again, and plays to the last
    expect(root).not_to_have_attribute("data-step", "11")
    expect(root).to_have_attribute("data-step", "11")
    assert player.locator(NEEDS_A_MODEL).filter(visible=True).count() == 0


def test_the_saved_page_is_light_and_dark_fits_a_phone_and_has_no_faults_of_accessibility(player: Page):
    root = player.locator(".loupe")
    expect(root).to_have_attribute("data-theme", "dark")
    assert Axe().run(player).response["violations"] == []
    player.locator(".player-theme").click()
    expect(root).to_have_attribute("data-theme", "light")
    player.set_viewport_size({"width": 390, "height": 844})
    assert Axe().run(player).response["violations"] == []
    assert player.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_saved_run_is_opened_again_closed_and_gone_on_with(step_page: StepPage, tmp_path: Path):
    page, root = step_page.open().page, step_page.root
    step_page.step(2)
    page.locator(".keep-button").click()
    with page.expect_download() as download:
        page.locator(".save-run[data-kind=recording]").click()
    assert download.value.suggested_filename == "loupe-the-cat-sat-3-steps.loupe"
    download.value.save_as(tmp_path / "cat.loupe")
    (tmp_path / "other.loupe").write_text("no recording")
    page.locator(".open-run input").set_input_files(tmp_path / "other.loupe")
    expect(page.locator(".keep-said")).to_contain_text("not a Loupe recording")
    page.locator(".shipped-run[data-name=greedy]").click()
    expect(root).to_have_attribute("data-steps", "16")
    expect(page.locator(".recording-bar")).to_contain_text("The capital of France is")
    page.locator(".close-recording").click()
    step_page.wait_for_steps(3)
    step_page.step()
    page.locator(".keep-button").click()
    page.locator(".open-run input").set_input_files(tmp_path / "cat.loupe")
    expect(root).to_have_attribute("data-opened", "")
    page.locator(".go-live").click()
    step_page.wait_for_steps(3)
    step_page.step()
    page.reload()
    step_page.wait_for_steps(4)
