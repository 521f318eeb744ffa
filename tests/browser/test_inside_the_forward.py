"""The forward pass opens into one layer, and a token shows by lines what it read."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.step_page import StepPage

pytestmark = pytest.mark.browser


def test_the_forward_pass_opens_by_keyboard_follows_the_step_and_chooses_the_layer_everywhere(step_page: StepPage):
    step_page.prefilled("The cat sat")
    page = step_page.page
    page.locator(".station[data-station=forward]").focus()
    page.keyboard.press("Enter")
    view = page.locator(".block-view[data-state=here]")
    expect(view.locator(".block-said")).to_contain_text("“ sat” at 2: step 0 was replayed")
    layer = step_page.store("store.sel.layer")
    after = view.locator(".block-box.is-residual .block-norm").last
    before_first = view.locator(".block-box[data-term=embedding] .block-norm").inner_text()
    here = after.inner_text()
    view.locator(".block-strip canvas").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(f".block-view[data-layer='{layer + 1}']")).to_be_visible()
    assert step_page.store("store.sel.layer") == layer + 1
    expect(view.locator(".block-box.is-residual .block-norm").first).to_have_text(here)  # what left goes in next
    step_page.page.locator(".transport [data-act=step]").click()
    expect(view.locator(".block-said")).to_contain_text("at 3: step 1 was replayed")
    expect(view.locator(".block-box[data-term=embedding] .block-norm")).not_to_have_text(before_first)
    view.locator(".lp-toggle").click()
    expect(view.locator(".block-table tbody tr")).to_have_count(30)


def test_a_token_that_is_pointed_at_focused_or_tapped_is_joined_to_what_it_read(step_page: StepPage):
    step_page.prefilled("The cat sat").step(2)
    page = step_page.page
    page.locator(".chip[data-position='3']").hover()
    lines = page.locator(".attention-lines path")
    expect(page.locator(".lines-said")).to_contain_text("what this token read · layer 10, head 0")
    row = step_page.store(
        "(() => { const { shape, data } = store.steps[1].planes.attention; const [, heads, keys] = shape;"
        " return [...data.subarray(10 * heads * keys, 10 * heads * keys + keys)]; })()"
    )
    drawn = sorted(float(w) for w in lines.evaluate_all("paths => paths.map((path) => path.dataset.weight)"))
    assert drawn == pytest.approx(sorted(weight for weight in row if weight >= 0.004), abs=1e-3)
    page.locator(".chip[data-position='5']").hover()
    expect(page.locator(".lines-said")).to_have_text("not fed yet: it has read nothing")
    expect(lines).to_have_count(0)
    page.mouse.move(5, 600)
    expect(page.locator(".lines-said")).to_be_hidden()
    page.locator(".chip[data-position='2']").focus()  # the last thing pressed was a key
    expect(page.locator(".lines-said[data-position='2']")).to_contain_text("what this token read")
    page.locator(".chip[data-position='1']").focus()
    expect(page.locator(".lines-said")).to_contain_text("the triangle in the attention panel has its row")
    tapped = (
        "(chip) => chip.dispatchEvent(new PointerEvent('click', {bubbles: true, composed: true, pointerType: 'touch'}))"
    )
    page.locator(".chip[data-position='3']").evaluate(tapped)
    expect(page.locator(".lines-said[data-position='3']")).to_contain_text("what this token read")
    page.mouse.click(5, 600)
    expect(page.locator(".lines-said")).to_be_hidden()
