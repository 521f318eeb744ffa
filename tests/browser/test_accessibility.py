"""The Step page by keyboard and for screen readers."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from tests.browser.step_page import StepPage

pytestmark = [pytest.mark.browser, pytest.mark.slow]

Theme = Literal["light", "dark"]
THEMES: tuple[Theme, ...] = ("light", "dark")
IS_DARK = """(dark) => {
    const node = document.querySelector('.stApp') ?? document.documentElement;
    return Number(getComputedStyle(node).backgroundColor.match(/[0-9]+/)[0]) < 128 === dark;
}"""
MORE_RULES = {"label-content-name-mismatch": {"enabled": True}, "target-size": {"enabled": True}}  # off by default
COLOURS = {"runOnly": ["color-contrast", "link-in-text-block"]}  # the rules, of those on by default, a theme can break


def in_theme(page: Page, theme: Theme) -> None:
    """Ask for a theme as the machine's own setting does, and wait until the page wears it and nothing of it moves."""
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    page.wait_for_function(IS_DARK, arg=theme == "dark")
    for step_page in page.locator(".loupe").all():
        expect(step_page).to_have_attribute("data-theme", theme)
    page.wait_for_function("() => document.getAnimations().every((one) => one.playState !== 'running')")


def violations(page: Page) -> list[str]:
    """What is wrong with the page in the light theme, and with its colours in the dark one; it ends up light."""
    in_theme(page, "light")
    found = serious(page, {"rules": MORE_RULES})
    in_theme(page, "dark")
    found += [f"in the dark: {fault}" for fault in serious(page, COLOURS)]
    in_theme(page, "light")
    return found


def serious(page: Page, options: dict[str, Any]) -> list[str]:
    """What axe-core finds at serious or critical impact."""
    found = Axe().run(page, options=options).response["violations"]
    return [
        f"{rule['impact']} {rule['id']}: {node['html'][:120]} {node['failureSummary']}"
        for rule in found
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]


def spoken(grid: Locator) -> str:
    """The words of the grid's active cell."""
    words: str = grid.evaluate(
        "(grid) => grid.querySelector('#' + grid.getAttribute('aria-activedescendant')).textContent"
    )
    return words


def test_axe_finds_nothing_serious(step_page: StepPage):
    in_theme(step_page.page, "light")
    assert violations(step_page.page) == [], "the first screen"
    step_page.prefilled("The cat sat").step(3).press("ArrowLeft").wait_for_selected(2)
    assert violations(step_page.page) == [], "looking back"
    step_page.page.locator(".station[data-station=stop]").click()
    step_page.page.locator(".lp-kv .lp-table").click()
    assert violations(step_page.page) == [], "stop rules and a table open"
    step_page.press("Escape").press("b").press("1")
    assert violations(step_page.page) == [], "a table on the big screen"
    step_page.press("3")
    expect(step_page.page.locator(".panel-next")).to_be_visible()
    assert violations(step_page.page) == [], "the next token on the big screen"
    step_page.press("Shift+Space")
    expect(step_page.page.locator(".turn-said")).to_be_visible()
    step_page.press("Space", times=3)
    assert violations(step_page.page) == [], "one step, slowly: the fourth still"
    step_page.press("Escape").press("Escape")
    step_page.page.goto(f"{step_page.url}/?lesson=the-cat-sat&scene=6")
    step_page.page.locator(".lesson-choice").first.click()
    assert violations(step_page.page) == [], "a lesson with a wrong answer"


def test_links_in_captions_can_be_read(page: Page, app_url: str):
    page.goto(f"{app_url}/fact-check?claim=the-model-does-not-choose")
    expect(page.get_by_text("source:").first).to_be_visible()
    for theme in THEMES:
        in_theme(page, theme)
        assert eventually_none(lambda: pale_captions(page)) == [], f"{theme}, once the page has faded in"


OPENED = {  # a page, and something that is on it once it is drawn
    "without-cache": ".lab-chart[data-kind=lines]",
    "roofline": ".lab-chart[data-kind=lines]",
    "prefill-decode": ".lab-chart[data-kind=bars]",
    "kv-memory": ".lab-chart[data-kind=lines]",
    "flash-attention": ".lab-chart[data-kind=lines]",
    "fact-check": ".st-key-topics",
    "glossary": "h1",
    "lessons": ".lesson-card",
    "lessons/the-cat-sat/sheet": "h1",
}


def test_axe_finds_nothing_serious_where_a_page_opens(page: Page, app_url: str):
    for address, shown in OPENED.items():
        page.goto(f"{app_url}/{address}")
        expect(page.locator(shown).first).to_be_visible()
        assert eventually_none(lambda: violations(page)) == [], f"{address}, once the page has faded in"


def pale_captions(page: Page) -> list[str]:
    """What axe-core finds too pale in captions."""
    only = {"runOnly": ["color-contrast"]}
    found = Axe().run(page, context="[data-testid=stCaptionContainer]", options=only).response["violations"]
    return [node["html"][:120] for rule in found for node in rule["nodes"]]


def eventually_none(find: Callable[[], list[str]]) -> list[str]:
    """What is still found after some tries: a page that is being drawn is paler than it will be."""
    for _ in range(5):
        if not (found := find()):
            return []
        time.sleep(1)
    return found


def test_the_page_has_one_first_heading_and_each_panel_one_of_its_own(step_page: StepPage):
    assert step_page.page.locator("h1").count() == 1
    assert step_page.page.locator("h2.lp-title").all_inner_texts() == [
        "KV cache",
        "Attention",
        "Next token",
        "Time per step",
        "Memory",
    ]


def test_a_token_is_named_by_what_is_seen(step_page: StepPage):
    step_page.prefilled("The cat sat")
    expect(step_page.chips.nth(1)).to_have_accessible_name("·cat 1 · 2644")
    expect(step_page.chips.nth(1)).to_have_accessible_description(
        "“ cat”, id 2644, position 1, typed in the prompt, fed in this step"
    )


def test_arrows_move_over_the_cache_and_enter_looks_at_the_step_that_appended(step_page: StepPage):
    step_page.prefilled("The cat sat").step(3)
    grid = step_page.page.locator(".lp-kv canvas")
    step_page.page.locator(".lp-kv .lp-segment").last.focus()
    step_page.press("Tab")
    expect(grid).to_be_focused()
    layer = step_page.store("store.sel.layer")
    assert f"at 5, layer {layer}: key norm" in spoken(grid), "it begins at the newest cached position"
    step_page.press("ArrowLeft").press("ArrowDown")
    assert f"at 4, layer {layer + 1}: key norm" in spoken(grid)
    assert "appended by step 2" in spoken(grid)
    assert step_page.selected == 3, "moving over the grid changes nothing"
    step_page.press("Enter").wait_for_selected(2)
    assert step_page.store("store.sel.layer") == layer + 1
    step_page.press("End")
    assert "not in the cache yet" in spoken(grid)
    step_page.press("Home")
    assert spoken(grid).startswith("“The” at 0"), spoken(grid)
    assert grid.evaluate("(grid) => [grid.ariaRowCount, grid.ariaColCount]") == ["30", "7"]


def test_arrows_choose_a_head_and_say_what_it_reads(step_page: StepPage):
    step_page.prefilled("The cat sat").step()
    grid = step_page.page.locator(".lp-thumbs canvas")
    step_page.page.locator(".lp-attention .lp-toggle").last.focus()
    step_page.press("Tab")
    expect(grid).to_be_focused()
    before = step_page.store("store.sel")
    step_page.press("ArrowDown").press("ArrowRight")
    expect(grid.locator("[role=gridcell]")).to_have_count(1)
    said = f"layer {before['layer'] + 1}, head {before['head'] + 1}, reads “"
    expect(grid.locator("[role=gridcell]")).to_contain_text(said)  # once both keys are drawn
    assert spoken(grid).startswith(said)
    assert step_page.selected == 1, "the arrows did not look back"


def test_a_panel_a_slider_and_a_station_say_what_they_are(step_page: StepPage):
    page = step_page.prefilled("The cat sat").page
    page.locator(".panel-kv .what-is").click()
    expect(page.locator(".popover-term:popover-open")).to_contain_text("The keys and values of all tokens so far")
    page.keyboard.press("Escape")
    page.locator(".lp-slider [data-term='top-p']").hover()
    expect(page.locator(".lp-tip:popover-open")).to_contain_text("Only the likeliest tokens that together reach")
    page.mouse.move(5, 5)
    page.locator(".station[data-station='in']").focus()
    page.keyboard.press("Tab")
    expect(page.locator(".lp-tip:popover-open")).to_contain_text("One run of tokens through all layers")
