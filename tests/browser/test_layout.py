"""What has to be on screen, at which size of the view, and what must not move."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.step_page import StepPage

pytestmark = [pytest.mark.browser, pytest.mark.slow]

LONG = "The quick brown fox jumps over the lazy dog while curious engineers measure bandwidth. " * 8
SMALL_TEXT = """() => {
  const found = {};
  const root = document.querySelector('.st-key-step_page [data-testid=stBidiComponentIsolated]').shadowRoot;
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const node = texts.currentNode.parentElement;
    const isUnseen = node.closest('style, canvas, .visually-hidden') || !node.checkVisibility();
    if (isUnseen || !texts.currentNode.data.trim()) continue;
    const size = parseFloat(getComputedStyle(node).fontSize);
    if (size < 12) found[`${node.tagName}.${node.className}`] = size;
  }
  return found;
}"""
HIDDEN_FOCUS = """() => {
  let node = document.activeElement;
  while (node?.shadowRoot) node = node.shadowRoot.activeElement;
  const page = node?.closest('.page');
  if (!page) return null;
  const { top, bottom } = node.getBoundingClientRect();
  const bar = page.querySelector('.transport');
  const isHidden = !bar.contains(node) && (bottom > bar.getBoundingClientRect().top || top < 50);
  return { name: `${node.tagName}.${node.className} ${node.textContent}`, isHidden };
}"""


def box(step_page: StepPage, selector: str) -> dict[str, float]:
    found = step_page.page.locator(selector).first.bounding_box()
    assert found is not None, f"{selector} has no place on the page"
    return {"top": found["y"], "bottom": found["y"] + found["height"], "right": found["x"] + found["width"]}


def main(step_page: StepPage, name: str) -> Any:
    return step_page.page.get_by_test_id("stMain").evaluate(f"(main) => main.{name}")


def test_a_long_text_is_never_wider_than_the_page_and_every_token_can_be_reached(step_page: StepPage):
    step_page.prefilled(LONG).step(2)
    assert main(step_page, "scrollWidth") == main(step_page, "clientWidth")
    assert box(step_page, ".strip-legend")["right"] <= 1260
    assert box(step_page, ".chip[data-standing=drawn]")["right"] <= 1260
    folds = step_page.page.locator(".strip .fold")
    while folds.count():
        folds.first.click()
    assert step_page.chips.count() == step_page.store("store.tokens.length")
    for chip in (step_page.chips.first, step_page.chips.last):
        chip.focus()
        seen = chip.evaluate(
            "(chip) => { const { left, right, top } = chip.getBoundingClientRect();"
            " return chip.getRootNode().elementFromPoint((left + right) / 2, top + 9)?.closest('.chip') === chip; }"
        )
        assert seen, "a token that has the focus is in view"


def test_nothing_moves_while_the_line_of_tokens_fills_up(step_page: StepPage):
    step_page.page.set_viewport_size({"width": 640, "height": 720})
    step_page.prefilled("The cat sat").step()
    before = box(step_page, ".panels"), box(step_page, ".chip[data-position='0']")
    step_page.step(8)
    assert step_page.page.locator(".strip-part.of-run").evaluate("(part) => part.scrollWidth > part.clientWidth")
    assert (box(step_page, ".panels"), box(step_page, ".chip[data-position='0']")) == before
    assert main(step_page, "scrollTop") == 0
    assert box(step_page, ".chip[data-standing=drawn]")["right"] <= 630, "the newest token is in view"


def test_the_first_screen_says_what_this_is_what_the_prefill_did_and_what_to_press_and_nothing_moves_then(
    step_page: StepPage,
):
    page = step_page.page
    expect(page.get_by_role("heading", level=1)).to_have_text("Watch a real language model write, one token at a time")
    note = page.locator(".prefill-note")
    expect(note).to_have_text(
        "Prefill: the model read all 3 tokens of the prompt in one forward pass."
        "The KV cache now holds 3 columns; the last row of logits gave the first new token, ·on."
        "Press Step: one press, one token.or take the three-minute tour"
    )
    assert note.evaluate("(node) => [...node.children].every((part) => part.scrollWidth <= part.clientWidth + 1)")
    expect(page.locator(".transport .primary")).to_contain_text("Step")
    before = box(step_page, ".panels"), box(step_page, ".transport"), box(step_page, ".transport [data-act=step]")
    step_page.step()
    expect(note).to_be_hidden()
    after = box(step_page, ".panels"), box(step_page, ".transport"), box(step_page, ".transport [data-act=step]")
    assert after == before


def test_at_1280_by_720_the_panels_their_captions_the_sliders_and_u_are_on_screen(step_page: StepPage):
    step_page.prefilled("The cat sat").step(2)
    end = box(step_page, ".transport")["top"]
    for selector in (".panel-kv", ".panel-attention", ".panel-next", ".lp-kv .lp-foot", ".lp-draw", ".lp-sliders"):
        assert box(step_page, selector)["bottom"] <= end, selector


def test_at_1920_by_1080_everything_is_on_screen_without_scrolling(step_page: StepPage):
    step_page.page.set_viewport_size({"width": 1920, "height": 1080})
    step_page.prefilled("The cat sat").step(2)
    assert main(step_page, "scrollHeight") == main(step_page, "clientHeight")
    end = box(step_page, ".transport")["top"]
    for name in ("kv", "attention", "next", "timing", "memory"):
        card = box(step_page, f".panel-{name}")
        assert card["bottom"] <= end, name
        for part in (".lp-says", ".lp-body", ".lp-foot"):
            assert box(step_page, f".panel-{name} {part}")["bottom"] < card["bottom"], f"{name} {part}"
    size = step_page.page.locator(".page").evaluate("(page) => parseFloat(getComputedStyle(page).fontSize)")
    assert size == pytest.approx(16, abs=0.3)


def test_no_text_is_smaller_than_12_pixels(step_page: StepPage):
    step_page.prefilled("The cat sat").step(2).press("ArrowLeft").wait_for_selected(1)
    assert step_page.page.evaluate(SMALL_TEXT) == {}
    step_page.page.locator(".station[data-station=stop]").click()
    step_page.page.locator(".lp-attention .lp-table").click()
    assert step_page.page.evaluate(SMALL_TEXT) == {}


def test_at_a_zoom_of_200_percent_data_stays_on_screen(step_page: StepPage):
    step_page.page.set_viewport_size({"width": 640, "height": 360})  # 1280 x 720 as such a zoom leaves it
    step_page.prefilled("The cat sat").step(2)
    end = box(step_page, ".transport")["top"]
    assert box(step_page, ".chip[data-standing=drawn]")["bottom"] <= end
    for station in ("in", "forward", "logits", "sample", "stop"):
        assert box(step_page, f".station[data-station={station}]")["bottom"] <= end, station
    step_page.page.locator(".panel-next").evaluate("(panel) => panel.scrollIntoView({ block: 'start' })")
    assert end - max(56, box(step_page, ".panel-next")["top"]) > 220, "most of the view belongs to the panel"
    step_page.page.set_viewport_size({"width": 960, "height": 540})  # and 1920 x 1080
    main_box = step_page.page.get_by_test_id("stMain")
    main_box.evaluate("(main) => main.scrollTo(0, 0)")
    assert box(step_page, ".transport")["top"] - box(step_page, ".panel-kv")["top"] > 150, (
        "and a panel without scrolling"
    )


def test_what_has_the_focus_is_never_under_the_bar(step_page: StepPage):
    step_page.prefilled("The cat sat").step(2)
    step_page.page.locator(".prompt-box").focus()
    seen = []
    for _ in range(90):
        step_page.press("Tab")
        focus = step_page.page.evaluate(HIDDEN_FOCUS)
        if focus is None:
            break
        seen.append(focus)
    assert len(seen) > 40, "the whole page was walked through"
    assert [focus["name"] for focus in seen if focus["isHidden"]] == []


def test_on_a_phone_the_first_press_on_prefill_after_typing_counts(step_page: StepPage):
    """The box folds when it loses the focus; the button must not move away under the press."""
    step_page.page.set_viewport_size({"width": 390, "height": 844})
    step_page.page.locator(".prompt-box").fill("The capital of France is Paris. The capital of Spain is")
    step_page.page.locator("button.prefill").click()
    expect(step_page.chips).to_have_count(13)
