"""Panels are taken away as they stand on the page: text, cells and numbers, with a line that says what they are of."""

from __future__ import annotations

import csv
import io
import struct
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.step_page import StepPage

pytestmark = pytest.mark.browser

SVG = "{http://www.w3.org/2000/svg}"
LAYERS = 30


def taken(step_page: StepPage, box: str, kind: str) -> tuple[str, bytes]:
    """The name and the bytes of what the menu in `box` saves."""
    page = step_page.page
    page.locator(f"{box} .take-away").click()
    with page.expect_download() as saved:
        page.locator(f"{box} .take-menu:popover-open [data-kind={kind}]").click()
    return saved.value.suggested_filename, Path(saved.value.path()).read_bytes()


def test_every_panel_is_taken_away_as_it_stands(step_page: StepPage):
    step_page.prefilled("A <b>cat</b> & 🦊 猫 says").step(2)
    page = step_page.page
    page.locator(".panel-attention .lp-table").click()  # its picture is taken all the same
    for box, name in (
        (".panel-kv", "kv"), (".panel-attention", "attention"), (".panel-next", "next"), (".panel-timing", "timing"),
        (".panel-memory", "memory"), (".strip-box", "tokens"), (".turn", "loop"),
    ):  # fmt: skip
        file, data = taken(step_page, box, "svg")
        assert file == f"loupe-{name}-step-2.svg"
        svg = ElementTree.fromstring(data)
        texts = [node.text or "" for node in svg.iter(f"{SVG}text")]
        last = svg.findtext(f"{SVG}desc") or ""
        assert "SmolLM2" in last
        assert "A <b>cat</b> & 🦊 猫 says" in last
        assert "step 2" in last
        assert last.endswith("Loupe")
        assert not list(svg.iter(f"{SVG}b"))
        assert b"@font-face" in data
        if name == "kv":
            cells = next(node for node in svg.iter(f"{SVG}g") if node.get("class") == "cells")
            kept = int(page.locator(".panel-kv .lp-note").inner_text().split("×")[1].split()[0])
            assert len(list(cells.iter(f"{SVG}rect"))) == 2 * LAYERS * kept  # a key and a value each
        if name == "next":
            shown = page.locator(".lp-rows .lp-row:visible .lp-row-number").all_inner_texts()
            assert len(shown) > 4
            first = texts.index(shown[0])  # row by row: the token in one text or more, then raw and final
            assert [text for text in texts[first:] if text in shown][: len(shown)] == shown
        if name == "tokens":
            chips = page.locator(".chip:not([data-role=prompt]) small").all_inner_texts()
            assert len(chips) == 3
            assert set(chips) <= set(texts)
            assert any("<b>cat</b>" in text for text in texts)  # the line beneath
    expect(page.locator(".panel-attention .lp-twin")).to_be_visible()
    file, data = taken(step_page, ".panel-memory", "png")
    width, _ = struct.unpack(">II", data[16:24])
    inner = page.locator(".panel-memory .lp-body").evaluate("(node) => Math.ceil(node.getBoundingClientRect().width)")
    assert (file, width) == ("loupe-memory-step-2.png", 2 * (inner + 2 * 18))
    _, data = taken(step_page, ".panel-timing", "csv")
    rows = list(csv.reader(io.StringIO(data.decode("utf-8-sig"))))
    assert [row[0] for row in rows] == ["step", "0", "1", "2"]
