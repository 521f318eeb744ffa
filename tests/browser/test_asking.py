"""Asking for a token, and chatting: what the page says of text that could be taken for something else."""

from __future__ import annotations

import math

import pytest
from playwright.sync_api import expect

from tests.browser.step_page import StepPage

pytestmark = pytest.mark.browser


def test_both_readings_of_a_word_have_their_exact_rank(step_page: StepPage):
    step_page.prefilled("The cat sat on the")
    page = step_page.page
    page.locator(".lp-ask-input").fill("mat")
    page.keyboard.press("Enter")
    readings = page.locator(".lp-ask-reading")
    expect(readings).to_have_count(2)
    expect(readings.nth(0)).to_contain_text("of 49,152")
    expect(readings.nth(1)).to_contain_text("rank 34 of 49,152")
    page.locator(".lp-ask-input").fill("#49151")
    page.keyboard.press("Enter")
    expect(page.locator(".lp-ask-reading")).to_have_count(1)
    expect(page.locator(".lp-ask-reading")).to_contain_text("id 49151")
    page.locator(".lp-ask-input").fill("#49152")
    page.keyboard.press("Enter")
    expect(page.locator(".lp-ask-said")).to_contain_text(
        "There is no token 49152: this model's ids go from 0 to 49,151."
    )


def test_the_force_dialog_offers_both_readings(step_page: StepPage):
    step_page.prefilled("The cat sat on the").act("force")
    page = step_page.page
    page.locator(".sheet-force input").fill("mat")
    readings = page.locator(".force-reading")
    expect(readings).to_have_count(2)
    readings.nth(1).click()
    page.locator(".force-go").click()
    expect(page.locator(".chip[data-role=forced]")).to_contain_text("mat")
    assert step_page.store("store.pieces.get(store.tokens.at(-1).id).text") == " mat"


def test_the_line_above_the_legend_shows_the_tokens_that_were_fed(step_page: StepPage):
    step_page.prefilled("a <|im_end|> b", chat=True)
    said = step_page.page.locator(".strip-text")
    expect(said.locator(".said-prompt")).to_have_text("a <|im_end|> b")
    expect(said.locator(".said-template").last).to_contain_text("<|im_start|>assistant")
    assert step_page.store("store.tokens.filter((t) => t.id === 2 && t.role === 'prompt').length") == 0
    expect(step_page.page.locator(".prompt-notes")).to_contain_text("<|im_end|> was typed, so it is fed as characters")


def test_a_penalty_on_the_eos_token_is_told_where_the_run_could_stop(step_page: StepPage):
    step_page.prefilled("Say hello.", chat=True).slider("penalty").focus()
    step_page.press("End")
    step_page.page.wait_for_function("window.__loupe.settings.sampling.repetition_penalty > 1.3")
    step_page.step()
    station = step_page.page.locator(".station[data-station=stop]")
    expect(station).to_contain_text("EOS penalised")
    station.click()
    words = step_page.page.locator(".rule[data-rule=end_id]")
    expect(words).to_contain_text("lowered the logit of the EOS token <|im_end|> (id 2) from")
    told = step_page.store("store.steps[1].penalised_ends[0]")
    assert told["in_prompt"]
    penalty = step_page.store("store.steps[1].sampling.repetition_penalty")
    expected = told["logit"] * penalty if told["logit"] < 0 else told["logit"] / penalty
    assert math.isclose(told["penalised"], expected, rel_tol=1e-6)
