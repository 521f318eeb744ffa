"""One drawing in two halves: every part writes, then canvases are painted and sizes are read."""

from __future__ import annotations

from playwright.sync_api import Browser

from tests.explorer.components.js_page import js_page


def test_what_waits_for_the_writes_is_done_after_all_of_them_and_once_an_owner(browser: Browser):
    page = js_page(browser, {"draw_pass.js": "drawTogether, afterWrites"})
    seen = page.evaluate(
        """() => {
            const seen = [], canvas = {}, strip = {};
            console.error = (words) => seen.push(words);
            afterWrites(canvas, () => seen.push('outside of a drawing, at once'));
            drawTogether(() => {
                afterWrites(canvas, () => seen.push('never: asked again'));
                afterWrites(strip, () => { throw new Error('a fault of ours'); });
                seen.push('written');
                afterWrites(canvas, () => seen.push('painted'));
                seen.push('written');
            });
            afterWrites(canvas, () => seen.push('at once again'));
            return seen;
        }"""
    )
    assert seen == [
        "outside of a drawing, at once",
        "written",
        "written",
        "painted",
        "Loupe: a part of the page could not be drawn.",
        "at once again",
    ]
    page.close()
