"""What canvases take from the page: the size of their text."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from tests.explorer.components.js_page import js_page

pytestmark = pytest.mark.browser


@pytest.mark.parametrize(
    ("type_px", "share", "label"),
    [(16, 0.82, 13.12), (14, 0.82, 12), (32, 0.88, 28.16)],  # 14 x 0.82 is 11.48, and nothing is smaller than 12
)
def test_text_on_canvases_is_a_share_of_the_type_around_them(
    browser: Browser, type_px: int, share: float, label: float
):
    page = js_page(browser, {"palette.js": "paletteOf"})
    style = f"--label: {share}; font-size: {type_px}px"
    page.evaluate("(style) => { document.body.style.cssText = style; }", style)
    assert page.evaluate("paletteOf(document.body).label") == pytest.approx(label)
    page.close()
