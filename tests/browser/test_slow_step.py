"""One step, slowly, on the real page: each beat shows its station and its panel, and the result comes last."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.step_page import StepPage

pytestmark = [pytest.mark.browser, pytest.mark.slow]

STILLS = [  # station, panel, how its sentence begins, whether the new token is in the line
    ("in", None, "“ a” goes in: id 253, at position 4.", False),
    ("forward", "kv", "It passes through all 30 layers", False),
    ("forward", "kv", "In every layer its key and its value join the cache", False),
    ("forward", "attention", "Its query weighs the 5 cached keys. In layer 10, head 0, ", False),
    ("sample", "next", "The random number u = ", True),
]


def lit(step_page: StepPage, selector: str) -> list[str]:
    found: list[str] = step_page.page.locator(f"{selector}.is-lit").evaluate_all(
        "(nodes) => nodes.map(({ dataset, className }) => dataset.station ?? className.match(/panel-(\\w+)/)[1])"
    )
    return found


def test_five_stills_lead_through_one_step_and_then_it_is_a_step_as_any_other(step_page: StepPage):
    step_page.page.emulate_media(reduced_motion="reduce")
    step_page.prefilled("The cat sat").step().press("b").press("5")
    step_page.page.locator("[data-act=slow]").click()
    said = step_page.page.locator(".turn-said span[role=status]")
    for station, panel, words, has_come in STILLS:
        expect(said).to_contain_text(words)
        assert lit(step_page, ".station") == [station]
        assert lit(step_page, ".card") == ([panel] if panel else [])
        assert step_page.root.get_attribute("data-presents") == (panel or "memory")
        assert step_page.chips.count() == (6 if has_come else 5)
        step_page.press("Space")
    step_page.wait_for_steps(3)
    assert step_page.root.get_attribute("data-presents") == "memory", "the panel that was chosen is back"
    assert step_page.page.locator(".is-lit, .is-fed, .layer-sweep, .attention-lines path").count() == 0
    slow = step_page.ids
    step_page.press("Escape").prefilled("The cat sat").step(2)
    assert step_page.ids == slow, "the same step"
