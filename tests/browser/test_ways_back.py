"""Acts that drop something can be taken back, keys go to the run, and the page says what waits, in a real browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.step_page import StepPage

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TRANSLATE = """(root) => {
    const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    const found = [];
    while (texts.nextNode()) found.push(texts.currentNode);
    for (const text of found) {
        if (!text.data.trim() || text.parentElement.closest('[translate=no], .notranslate, textarea, svg')) continue;
        const font = document.createElement('font');
        font.append(Object.assign(document.createElement('font'), { textContent: `¡${text.data}!` }));
        text.replaceWith(font);
    }
    return found.length;
}"""


def drag(step_page: StepPage, label: str, share: float) -> None:
    """Take a slider's handle to a share of its width with the mouse."""
    slider = step_page.slider(label)
    slider.evaluate("(node) => node.scrollIntoView({ block: 'center' })")
    box = slider.bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    step_page.page.mouse.move(box["x"] + box["width"] / 2, y)
    step_page.page.mouse.down()
    step_page.page.mouse.move(box["x"] + box["width"] * share, y, steps=3)
    step_page.page.mouse.up()


def note(step_page: StepPage, words: str) -> None:
    expect(step_page.page.locator(".transport-note")).to_contain_text(words)


def test_a_what_if_stays_until_the_next_step_and_the_keys_go_to_the_run(step_page: StepPage):
    step_page.preset("unmodified (T = 1)").prefilled("The cat sat").step(2)
    panel = step_page.page.locator(".panel-next")
    drag(step_page, "temp", 0.9)
    tried = step_page.slider("temp").get_attribute("aria-valuetext")
    expect(panel).to_have_attribute("data-showing", "exact")
    step_page.page.wait_for_function(
        "() => window.__loupe.line.idle && window.__loupe.settings.sampling.temperature > 1.5"
    )
    step_page.page.wait_for_timeout(300)  # the answer to `settings` brings the newest record again
    expect(panel).to_have_attribute("data-showing", "exact")
    assert step_page.slider("temp").get_attribute("aria-valuetext") == tried
    step_page.press("ArrowLeft").wait_for_selected(1)  # the slider was dragged, so the arrow looks back
    step_page.press("End").step()
    expect(panel).to_have_attribute("data-showing", "drawn")
    step_page.act("help")
    expect(step_page.page.locator("dialog[open]")).to_be_visible()
    step_page.press("Escape").step()
    step_page.page.locator(".sampling-button").click()
    step_page.press("Escape").step()
    assert step_page.page.locator("dialog[open], .popover:popover-open").count() == 0


def test_forced_tokens_resets_and_new_prompts_are_taken_back(step_page: StepPage):
    page = step_page.page
    step_page.preset("greedy").prefilled("The cat sat").step(2)
    ids = step_page.ids
    page.locator("button.lp-row[data-chosen=false]").first.click()
    note(step_page, "Token forced")
    expect(page.locator(".station[data-station=sample]")).to_have_attribute("data-drew", "forced")
    page.locator(".undo").click()
    note(step_page, "Brought back")
    assert step_page.ids == ids
    step_page.step()
    page.locator(".prompt-box").fill("The dog")
    note(step_page, "The prompt was changed. Step goes on with the old one.")
    page.locator(".prefill-it").click()
    step_page.wait_for_steps(1)
    note(step_page, "New run; the one before had 4 steps.")
    step_page.press("z").wait_for_steps(4)
    assert step_page.ids[:6] == ids
    expect(page.locator(".prompt-box")).to_have_value("The cat sat")
    page.locator(".example").nth(1).click()  # an example is prefilled at once, also over a run
    step_page.wait_for_steps(1)
    step_page.press("z").wait_for_steps(4)
    step_page.act("reset")
    note(step_page, "Every run was dropped")
    page.locator(".undo").click()
    step_page.wait_for_steps(4)
    expect(page).to_have_url(re.compile("prompt=The"))


def test_a_fork_says_what_it_made_and_offers_what_can_differ(step_page: StepPage):
    page = step_page.page
    step_page.preset("unmodified (T = 1)").prefilled("The cat sat").step(2)
    step_page.press("ArrowLeft").wait_for_selected(1).act("fork").wait_for_steps(2)
    note(step_page, "Branch 2, from step 1.")
    page.locator(".way", has_text="Another temperature").click()
    step_page.press("ArrowRight")
    page.wait_for_function("() => window.__loupe.settings.sampling.temperature === 1.01")
    page.locator(".way", has_text="Another seed").click()
    note(step_page, "Branch 2 goes on with seed")
    assert step_page.store("store.settings.seed") != 0


def test_long_looks_can_be_stopped(step_page: StepPage):
    page = step_page.page
    step_page.prefilled("The cat sat on the mat. " * 100).step()  # 700 tokens: the check takes seconds
    page.locator(".checks-badge").click()
    expect(page.locator(".wait-time")).to_have_text("1 s")
    page.locator(".wait-stop").click()
    expect(page.locator(".sheet-checks .error-words")).to_contain_text("The check was cancelled at")
    step_page.press("Escape").step()


def test_a_translator_changes_no_token_and_the_page_goes_on(step_page: StepPage):
    page = step_page.page
    step_page.preset("greedy").prefilled("שלום\nעולם").step()
    expect(page.locator(".strip-text")).to_have_attribute("dir", "rtl")
    page.locator(".panel-attention .lp-table").click()
    tokens = "(nodes) => nodes.map((node) => node.textContent)"
    token_nodes = ".chip-text, .lp-row-token.token-text, .panel-attention tbody td:nth-child(2), .strip-said"
    before = page.locator(token_nodes).evaluate_all(tokens)
    assert step_page.root.evaluate(TRANSLATE) > 100
    assert page.locator(token_nodes).evaluate_all(tokens) == before
    assert "¡" in page.locator(".panel-kv .lp-title").inner_text()
    step_page.step(2)
    assert "¡" not in page.locator(".station[data-station=in] .station-main").inner_text()
    assert "id " in step_page.station("in")
    expect(page.locator(".strip .chip")).to_have_count(len(step_page.store("store.tokens")))
    page.locator("button.lp-row[data-chosen=false]").first.click()
    note(step_page, "Token forced")
