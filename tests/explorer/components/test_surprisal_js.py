"""Surprisal in bits and perplexity, by hand: a token of probability 1/2 surprises by one bit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.explorer.components.js_page import js_page

pytestmark = pytest.mark.browser

RUN = """() => {
    globalThis.asked = [];
    globalThis.store = {
        promptLength: 3, recording: null, session: {sid: 'one'}, emit: () => {},
        tokens: [{id: 5}, {id: 6}, {id: 7}, {id: 8}, {id: 9}],
        steps: [{draw: {raw_prob: 0.25}}, {draw: {raw_prob: 0.5}}],
        send: async (op) => {
            asked.push(op);
            return {rows: [{actual_next_prob: 0.5}, {actual_next_prob: 0.125}, {actual_next_prob: null}]};
        },
    };
    globalThis.surprisal = new Surprisal(store);
    surprisal.toggle();
}"""


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    opened = js_page(browser, {"surprisal.js": "Surprisal, bitsOf, perplexityOf", "strip_legend.js": "paintSurprisal"})
    yield opened
    opened.close()


@pytest.mark.parametrize(("p", "bits"), [(1, 0), (0.5, 1), (0.125, 3), (1 / 1024, 10)])
def test_surprisal_is_minus_the_logarithm_of_the_probability_to_base_two(page: Page, p: float, bits: float):
    assert page.evaluate(f"bitsOf({p})") == bits


def test_perplexity_is_two_to_the_mean_surprisal_of_the_tokens_that_have_one(page: Page):
    found = page.evaluate("perplexityOf([null, 1, 3])")
    assert found == {"count": 2, "mean": 2, "perplexity": 4}
    assert page.evaluate("perplexityOf([null])") is None


def test_the_prompt_is_asked_for_once_and_its_first_token_has_no_surprisal(page: Page):
    page.evaluate(RUN)
    page.evaluate("async () => { await surprisal.sync(); await surprisal.sync(); }")
    assert page.evaluate("asked") == ["prompt_rows"]
    assert page.evaluate("[0, 1, 2, 3, 4].map((position) => surprisal.at(position))") == [None, 1, 3, 2, 1]
    summary: dict[str, Any] = page.evaluate("surprisal.summary()")
    assert (summary["prompt"]["count"], summary["prompt"]["perplexity"]) == (2, 4)
    assert summary["generated"]["perplexity"] == pytest.approx(2**1.5)
    assert (summary["all"]["count"], summary["all"]["perplexity"]) == (4, pytest.approx(2 ** (7 / 4)))


def test_another_prompt_is_asked_for_anew_and_a_recording_never(page: Page):
    page.evaluate(RUN)
    page.evaluate("async () => { await surprisal.sync(); store.tokens[1] = {id: 60}; await surprisal.sync(); }")
    assert page.evaluate("asked.length") == 2
    page.evaluate("async () => { store.recording = {}; store.tokens[1] = {id: 61}; await surprisal.sync(); }")
    assert page.evaluate("asked.length") == 2
    assert page.evaluate("surprisal.at(1)") is None, "of another prompt"


def test_a_refusal_is_kept_and_not_asked_again_until_it_is_switched_on_anew(page: Page):
    page.evaluate(RUN)
    refuse = "store.send = async (op) => { asked.push(op); throw {message: 'busy'}; }"
    page.evaluate(f"async () => {{ {refuse}; await surprisal.sync(); await surprisal.sync(); }}")
    assert page.evaluate("[asked.length, surprisal.error]") == [1, "busy"]
    page.evaluate("async () => { surprisal.toggle(); surprisal.toggle(); await surprisal.sync(); }")
    assert page.evaluate("asked.length") == 2


@pytest.mark.parametrize(("bits", "share", "words"), [(6, "0.500", "6.0 bits"), (30, "1.000", "30.0 bits")])
def test_a_chip_says_its_bits_and_has_their_share_of_the_colour(page: Page, bits: int, share: str, words: str):
    found = page.evaluate(
        f"""() => {{
            const chip = document.createElement('button');
            chip.append(document.createElement('small'));
            paintSurprisal(chip, {{id: 7}}, 3, {bits});
            const seen = [chip.style.getPropertyValue('--bits'), chip.textContent, chip.className];
            paintSurprisal(chip, {{id: 7}}, 3, undefined);
            return [...seen, chip.textContent, chip.className];
        }}"""
    )
    assert found == [share, words, "shows-bits", "3 · 7", ""]
    assert math.isclose(min(1, bits / 12), float(share), abs_tol=1e-3)
