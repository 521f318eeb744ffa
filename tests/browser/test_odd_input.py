"""Odd prompts and bad input: shown verbatim, refused in words, nothing lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.step_page import StepPage
from tests.engine.architectures import tiny_llama_folder

pytestmark = [pytest.mark.browser, pytest.mark.slow]

HOSTILE = {
    "markup": 'a<b & "c" </script><img src=x onerror=alert(1)>',
    "markdown": "costs $5 and $9, a_b, [x] [y], *now*, `c`",
    "right to left": "שלום עולם and مرحبا",
    "controls": "a\tb\nc\u200b\u202ed",
    "emoji": "🦊 鰻 👩‍👩‍👧",
    "combining": "e\u0301 n\u0303",
}


def test_hostile_text_is_shown_verbatim_and_creates_no_element(step_page: StepPage):
    dialogs: list[str] = []
    step_page.page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    for name, prompt in HOSTILE.items():
        step_page.prefilled(prompt).step()
        hexes = step_page.store("store.tokens.filter((t) => t.role === 'prompt').map((t) => t.hex)")
        assert bytes.fromhex("".join(hexes)).decode() == prompt, name
        shown: str = step_page.page.locator(".strip-text").text_content() or ""
        assert shown.startswith(prompt.replace("\n", " ⏎ ")), f"{name}: the reading line is one line"
        assert not dialogs, name
        assert step_page.page.locator(".loupe img, .loupe script").count() == 0, name


def test_an_emoji_over_two_tokens_names_its_bytes(step_page: StepPage):
    step_page.prefilled("🦊 鰻")
    parts = step_page.store("store.tokens.flatMap((token) => token.parts)")
    fox = [part for part in parts if part["char"] == "🦊"]
    assert fox, "the fox is split over tokens"
    assert [fox[0]["first"], fox[-1]["last"], fox[0]["of"]] == [1, 4, 4]


def test_an_empty_prompt_is_refused_in_words_and_the_session_stays(step_page: StepPage):
    step_page.prefilled("The cat sat").step()
    ids = step_page.ids
    step_page.prefill("")
    expect(step_page.error).to_contain_text("empty")
    assert step_page.ids == ids
    step_page.step()


def test_three_spaces_run_and_are_visible(step_page: StepPage):
    step_page.prefilled("   ")
    assert step_page.chips.count() >= 2
    assert "·" in step_page.chips.first.inner_text()


def test_a_prompt_beyond_the_context_is_refused_with_both_numbers(step_page: StepPage):
    step_page.prefilled("The cat sat")
    ids = step_page.ids
    step_page.prefill("one two three four five six seven eight nine ten " * 1000)
    expect(step_page.error).to_contain_text("8,192")
    assert step_page.ids == ids


def test_a_megabyte_is_refused_at_once_and_nothing_freezes(step_page: StepPage):
    step_page.prefilled("The cat sat")
    step_page.page.locator(".prompt-box").evaluate(
        "(box) => { box.value = 'x'.repeat(1e6); box.dispatchEvent(new Event('input', { bubbles: true })); }"
    )
    expect(step_page.error).to_contain_text("1,000,000")
    step_page.page.locator("button.prefill").click()
    assert step_page.steps == 1
    step_page.page.locator(".prompt-box").fill("The dog")
    step_page.page.locator("button.prefill").click()
    step_page.page.wait_for_function("() => window.__loupe.session?.prompt === 'The dog'")


def test_a_model_that_is_not_there_leaves_the_running_one(step_page: StepPage):
    step_page.prefilled("The cat sat")
    message = step_page.store("store.send('model', { id: '/no/such/folder' }).catch((error) => error.message)")
    assert "/no/such/folder" in message
    step_page.step()


def test_a_smaller_model_brings_the_chosen_layer_and_head_within_its_own(step_page: StepPage, tmp_path: Path):
    folder = tiny_llama_folder(tmp_path)
    step_page.prefilled("The cat sat")
    step_page.store("store.select({ layer: 29, head: 8 })")
    step_page.store(f"store.send('model', {{ id: {folder!r} }})")
    step_page.page.wait_for_function("() => window.__loupe.model.num_layers === 2")
    assert step_page.store("[store.sel.layer, store.sel.head]") == [1, 3]
    step_page.wait_for_steps(1).step(2)
    assert step_page.store("store.steps.at(-1).kv_bytes") == 512 * step_page.store("store.steps.at(-1).kv_len")


def test_the_end_of_a_run_says_why_and_how_to_go_on(step_page: StepPage):
    step_page.prefilled("The cat sat")
    step_page.store("store.send('settings', { stop: { max_new_tokens: 3, use_end_ids: true, stop_strings: [] } })")
    step_page.step(2)
    expect(step_page.page.locator(".station[data-station=stop]")).to_contain_text("max new tokens 3")
    step_page.press("Space")
    step_page.page.wait_for_timeout(300)
    assert step_page.steps == 3
    expect(step_page.page.locator(".transport")).to_contain_text("Raise the limit to 6")
