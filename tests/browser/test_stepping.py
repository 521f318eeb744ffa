"""A person at the Step page: prefill, step, look back, rewind, force, fork, drag a slider."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.step_page import StepPage

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CAT = [504, 2644, 2643]  # The, cat, sat


def test_the_cat_sat_greedily_on_a_cliff(step_page: StepPage):
    step_page.preset("greedy").prefilled("The cat sat").step(5)
    assert step_page.ids[:5] == [*CAT, 335, 253]
    assert step_page.text == "The cat sat on a cliff, and the"
    assert step_page.roles == ["prompt"] * 3 + ["generated"] * 6


def test_the_five_stations_tell_the_step_in_true_numbers(step_page: StepPage):
    step_page.preset("greedy").prefilled("The cat sat")
    assert "3 tokens" in step_page.station("in")
    assert "at 0–2" in step_page.station("in")
    assert "30 layers" in step_page.station("forward")
    assert "1 × 49,152" in step_page.station("logits")
    step_page.step()
    assert "id 335 at position 3" in step_page.station("in")
    assert "4 keys read" in step_page.station("forward")
    assert "go on" in step_page.station("stop")


def test_the_newest_token_is_not_in_the_cache_yet(step_page: StepPage):
    step_page.prefilled("The cat sat").step(2)
    assert step_page.store("store.steps.at(-1).kv_len") == step_page.chips.count() - 1
    expect(step_page.chips.last).to_have_attribute("data-standing", "drawn")


def test_forty_fast_presses_of_step_are_forty_steps(step_page: StepPage):
    step_page.prefilled("Once upon a time").press("Space", times=40)
    step_page.wait_for_steps(41)
    assert step_page.store("store.steps.map((step) => step.index)") == list(range(41))
    assert step_page.store("store.tokens.length") == 4 + 41
    fed = step_page.store("store.steps.slice(1).map((step) => step.input_ids[0])")
    drawn = step_page.store("store.steps.slice(0, -1).map((step) => step.draw.token_id)")
    assert fed == drawn


def test_looking_back_changes_nothing_and_needs_no_request(step_page: StepPage):
    step_page.prefilled("The cat sat").step(4)
    ids, asked = step_page.ids, step_page.shown("ack")
    step_page.press("ArrowLeft", times=3).wait_for_selected(1)
    step_page.press("Home").wait_for_selected(0)
    step_page.press("End").wait_for_selected(4)
    step_page.page.locator(".scrubber").fill("2")
    step_page.wait_for_selected(2)
    assert step_page.ids == ids
    assert step_page.steps == 5
    steps_asked = "store.line.pending('step')"
    assert step_page.store(steps_asked) == 0
    assert int(step_page.shown("ack")) - int(asked) <= 4, "only settled selections were reported"


def test_rewinding_drops_later_steps_and_stepping_again_gives_the_same_tokens(step_page: StepPage):
    step_page.prefilled("The cat sat").step(5)
    ids = step_page.ids
    step_page.press("ArrowLeft", times=3).wait_for_selected(2)
    step_page.act("rewind").wait_for_steps(3)
    assert step_page.ids == ids[:6]
    step_page.step(3)
    assert step_page.ids == ids


def test_clicking_a_bar_forces_that_token_and_it_is_fed_next(step_page: StepPage):
    step_page.preset("greedy").prefilled("The cat sat").step()
    bar = step_page.page.locator("button.lp-row[data-chosen=false]").nth(1)
    wanted = int(bar.get_attribute("data-id") or "")
    bar.click()
    expect(step_page.chips.last).to_have_attribute("data-role", "forced")
    assert step_page.ids[-1] == wanted
    assert step_page.steps == 2
    step_page.step()
    assert step_page.store("store.steps.at(-1).input_ids") == [wanted]


def test_forcing_an_older_step_asks_first_and_names_what_it_replaces(step_page: StepPage):
    step_page.prefilled("The cat sat").step(3)
    ids = step_page.ids
    step_page.press("ArrowLeft", times=2).wait_for_selected(1)
    step_page.page.locator("button.lp-row[data-chosen=false]").first.click()
    expect(step_page.page.locator(".panel-next")).to_contain_text("replaces 2 later tokens")
    assert step_page.ids == ids, "nothing happens until it is confirmed"
    step_page.page.locator(".lp-go").click()
    step_page.wait_for_steps(2)
    assert step_page.ids[:4] == ids[:4]
    assert step_page.roles[-1] == "forced"


def test_choosing_heads_during_a_run_loses_and_doubles_no_step(step_page: StepPage):
    step_page.prefilled("Once upon a time").press("p")
    for turn in range(40):
        step_page.store(f"store.select({{ layer: {turn % 30}, head: {turn % 9} }})")
        step_page.page.wait_for_timeout(20)
    step_page.press("p")
    step_page.page.wait_for_function("() => !window.__loupe.play.on && window.__loupe.line.idle")
    steps, tokens = step_page.store("[store.steps.map((step) => [step.index, step.kv_len]), store.tokens.length]")
    assert len(steps) > 3  # one under way may still come, so all is read at once
    assert steps == [[index, 4 + index] for index in range(len(steps))]
    assert tokens == 4 + len(steps)


def test_a_fork_keeps_its_own_history_and_both_can_be_returned_to(step_page: StepPage):
    step_page.prefilled("The cat sat").step(3)
    ids = step_page.ids
    step_page.press("ArrowLeft", times=2).wait_for_selected(1)
    step_page.act("fork").wait_for_steps(2)
    step_page.preset("greedy").step(3)
    forked = step_page.ids
    assert forked[:5] == ids[:5]
    step_page.act("branches")
    step_page.page.locator(".branch:not([disabled])").first.click()
    step_page.wait_for_steps(4)
    assert step_page.ids == ids


def test_dragging_a_slider_moves_the_bars_and_never_the_token(step_page: StepPage):
    step_page.preset("unmodified (T = 1)").prefilled("The cat sat").step(2)
    ids = step_page.ids
    drawn_with = step_page.store("store.steps.at(-1).sampling.temperature")
    slider = step_page.slider("temp")
    slider.evaluate("(input) => { input.value = 20; input.dispatchEvent(new Event('input', { bubbles: true })); }")
    assert step_page.store("store.params.temperature") == 0.2
    slider.evaluate("(input) => input.dispatchEvent(new Event('change', { bubbles: true }))")
    step_page.page.wait_for_function("() => window.__loupe.settings?.sampling.temperature === 0.2")
    assert step_page.ids == ids
    assert step_page.store("store.steps.at(-1).sampling.temperature") == drawn_with == 1
    step_page.step()
    assert step_page.store("store.steps.at(-1).sampling.temperature") == 0.2


def test_play_draws_until_it_is_paused(step_page: StepPage):
    step_page.prefilled("Once upon a time").press("p")
    step_page.page.wait_for_function("() => window.__loupe.steps.length > 3")
    step_page.press("p")
    step_page.page.wait_for_function("() => !window.__loupe.play.on && window.__loupe.line.idle")
    step_page.page.wait_for_timeout(300)  # one under way still comes
    reached = step_page.steps
    step_page.page.wait_for_timeout(700)
    assert step_page.steps == reached


def test_the_numbers_are_checked_against_stock_transformers(step_page: StepPage):
    step_page.preset("chat defaults").prefilled("The cat sat").step(3)
    step_page.page.locator(".checks-badge").click()
    expect(step_page.page.locator(".checks-badge")).to_have_attribute("data-state", "passed", timeout=120_000)
    assert step_page.page.locator(".check-row").count() == 14


def test_every_panel_has_a_table_with_the_same_numbers(step_page: StepPage):
    step_page.prefilled("The cat sat").step()
    tables = step_page.page.locator("button.lp-table")
    assert tables.count() == 5
    for i in range(5):
        tables.nth(i).click()
    expect(step_page.page.locator(".panels table").first).to_be_visible()
    assert step_page.page.locator(".panels table").count() == 5


def test_the_mean_of_heads_is_a_plain_mean_that_sums_to_1(step_page: StepPage):
    step_page.prefilled("The cat sat").step()
    panel = step_page.page.locator(".panel-attention")
    panel.get_by_role("button", name="mean of heads").click()
    panel.locator("button.lp-table").click()
    shown = [float(cell) for cell in panel.locator("table td:last-child").all_inner_texts()]
    one_layer = "store.steps.at(-1).planes.attention.data.slice(store.sel.layer * 9 * 4, (store.sel.layer + 1) * 9 * 4)"
    heads = step_page.store(f"Array.from({one_layer})")  # 9 heads over 4 keys
    assert shown == pytest.approx([sum(heads[key::4]) / 9 for key in range(4)], abs=1e-3)
    assert sum(shown) == pytest.approx(1, abs=2e-3)


def test_a_chat_turn_shows_what_the_template_inserted(step_page: StepPage):
    step_page.prefilled("Why is the sky blue?", chat=True)
    roles = step_page.store("store.tokens.map((token) => token.role)")
    assert roles[0] == "template"
    assert roles.count("prompt") == 6
    assert set(roles) == {"template", "prompt", "generated"}


def test_play_is_asked_for_once_and_the_server_makes_the_steps(step_page: StepPage):
    step_page.preset("greedy").prefilled("The cat sat")
    step_page.page.evaluate(
        "() => { const store = window.__loupe, send = store.send.bind(store); window.said = [];"
        " store.send = (op, args) => { window.said.push(op); return send(op, args); }; }"
    )
    step_page.step()
    step_page.press("p")
    step_page.page.wait_for_function("() => window.__loupe.steps.length >= 4")
    step_page.press("p")
    assert [op for op in step_page.page.evaluate("window.said") if op != "select"] == ["step", "play", "pause"]


def test_stepping_alone_is_switched_on_shown_and_kept_over_a_reload(step_page: StepPage):
    step_page.prefilled("The cat sat")
    step_page.page.locator(".sampling-button").click()
    switch = step_page.page.locator(".solo-switch")
    expect(switch).to_have_attribute("aria-checked", "false")
    switch.click()
    expect(switch).to_have_attribute("aria-checked", "true")
    step_page.page.keyboard.press("Escape")
    step_page.step()
    assert "with 0 others" in step_page.station("forward")
    step_page.page.reload()
    step_page.wait_for_steps(2)
    expect(step_page.page.locator(".sampling-button")).to_contain_text("alone")


def test_on_ones_own_machine_there_is_nothing_to_share(step_page: StepPage):
    step_page.prefilled("The cat sat")
    expect(step_page.page.locator(".share-switch")).to_be_hidden()
