"""Tables that are taken away: what a spreadsheet reads is what stood on the page."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.explorer.components.js_page import js_page

pytestmark = pytest.mark.browser

CELLS = [" cat", "a,b", 'say "hi"', "two\nlines", "0.5", "-3", "−3", "⏎", "🦊", ""]


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    opened = js_page(browser, {"table_twin.js": "tableTwin, csvCell, csvName"})
    yield opened
    opened.close()


def test_a_cell_is_read_back_as_it_stood(page: Page):
    row = page.evaluate("(cells) => cells.map(csvCell).join(',')", CELLS)
    assert next(csv.reader(io.StringIO(row))) == CELLS


@pytest.mark.parametrize("token", ["=1+1", "@SUM(A1)", "+cmd", "-rm", "\tx"])
def test_a_token_that_looks_like_a_formula_is_no_formula(page: Page, token: str):
    row = page.evaluate("(cell) => csvCell(cell)", token)
    assert next(csv.reader(io.StringIO(row))) == [f"'{token}"]


def test_a_table_is_saved_under_its_own_name(page: Page):
    assert page.evaluate("csvName('KV cache after step 3, layer 10')") == "kv-cache-after-step-3-layer-10.csv"
    assert page.evaluate("csvName('“ 猫 ”')") == "table.csv"
    page.evaluate("document.body.append(tableTwin(['id', 'token'], [[335, ' on'], [28, ',']], 'Tokens'))")
    with page.expect_download() as saved:
        page.locator(".twin-save").click()
    assert saved.value.suggested_filename == "tokens.csv"
    text = saved.value.path().read_bytes().decode("utf-8-sig")
    assert list(csv.reader(io.StringIO(text))) == [["id", "token"], ["335", " on"], ["28", ","]]
