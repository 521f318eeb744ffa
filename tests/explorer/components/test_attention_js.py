"""Rows of a prompt's attention map, pooled until all of them fit into the room there is."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.explorer.components.js_page import js_page

pytestmark = pytest.mark.browser


def test_pooled_rows_cover_every_query_with_the_largest_weight_and_leave_the_last_row_alone(browser: Browser):
    page = js_page(browser, {"attention_data.js": "pooledLines"})
    made: dict[str, Any] = page.evaluate(
        """() => {
            const row = (q) => Float32Array.from({ length: q + 1 }, (_, key) => (key === q ? 0.5 : 0.25));
            const line = (q) => ({ position: q, values: q === 4 ? null : row(q), current: q === 9 });
            const lines = Array.from({ length: 10 }, (_, q) => line(q));
            const plain = ({ first, position, values, current }) => [first ?? position, position, [...values], current];
            const { lines: pooled, each } = pooledLines(lines, 4);
            return { each, pooled: pooled.map(plain), whole: pooledLines(lines, 10).lines === lines };
        }"""
    )
    page.close()
    assert made["whole"], "where all fit, nothing is pooled"
    assert made["each"] == 3
    assert made["pooled"] == [
        [0, 2, [0.5, 0.5, 0.5], False],
        [3, 5, [0.25, 0.25, 0.25, 0.5, 0.25, 0.5], False],  # the row of query 4 is not here
        [6, 8, [0.25] * 6 + [0.5] * 3, False],
        [9, 9, [0.25] * 9 + [0.5], True],
    ]
