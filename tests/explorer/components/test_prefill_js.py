"""What the page says of a prefill's speed: tokens that were read, over the time of the forward passes alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.explorer.components.js_page import js_page

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    opened = js_page(browser, {"prefill.js": "prefillSpeed, prefillSpeedWords, howRead", "floor.js": "timesFloor"})
    yield opened
    opened.close()


def step(tokens: int, reused: int, forwards: int, forward_ms: float, wait_ms: float = 9_000.0, **more: Any) -> Any:
    times = {"forward": forward_ms, "wait": wait_ms, "total": forward_ms + wait_ms + 3}
    return {
        "index": 0,
        "input_ids": [5] * tokens,
        "reused_tokens": reused,
        "forwards": forwards,
        "timing_ms": times,
        **more,
    }


def told(page: Page, name: str, *given: Any) -> Any:
    return page.evaluate("([name, given]) => globalThis[name](...given)", [name, list(given)])


@pytest.mark.parametrize(
    ("made", "words", "how"),
    [
        (step(600, 0, 3, 2_000.0), "300 tokens/s", "in 3 forward passes"),
        (step(4, 0, 1, 20.0), "200 tokens/s", "in one forward pass"),
        (step(600, 512, 1, 400.0), "220 tokens/s", "in one forward pass, 512 tokens copied from a shared prompt"),
        (step(600, 600, 0, 0.0), "copied, not read", "prefilled before, copied from a shared prompt"),
        ({**step(600, 0, 3, 2_000.0), "timing_ms": None}, "not timed", "in 3 forward passes"),
    ],
)
def test_only_what_was_read_has_a_speed_and_waiting_does_not_slow_it(page, made, words, how):
    assert told(page, "prefillSpeedWords", made) == words
    assert told(page, "howRead", made) == how


def test_a_prompt_that_was_copied_stands_on_no_lower_bound(page):
    machine = {"bytes_per_s": 1e9, "flops_per_s": 1e9}
    assert told(page, "timesFloor", step(600, 600, 0, 0.0, floor=None), machine) is None
    bound = {"weights": 1e9, "cache": 0, "flops": 5e9}  # 1 s to read, 5 s to multiply
    assert told(page, "timesFloor", step(600, 0, 3, 10_000.0, floor=bound), machine) == 2
