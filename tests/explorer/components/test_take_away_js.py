"""Pictures that are taken away: real text and shapes in well-formed SVG, and the same at twice the size as PNG."""

from __future__ import annotations

import re
import struct
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from explorer.components.module_bundle import bundle_js, needed_for
from explorer.components.page_words import words_script
from tests.explorer.components.js_page import SOURCES, js_page

pytestmark = pytest.mark.browser

SVG = "{http://www.w3.org/2000/svg}"
EXPORTS = {
    "svg_markup.js": "xmlText",
    "svg_pen.js": "SvgPen",
    "canvas.js": "makeSurface, Raster",
    "picture_file.js": "takePicture, pngFile, wrappedText",
    "step_source.js": "promptStart",
    "take_away.js": "takeAway, tellSource, pictureName",
}
ODD_TOKENS = ["🦊", "猫", "مرحبا", "<b>", "&amp;", '"', "]]>", " a  b ", "\u0000\u001b", "\ufffe", "\ud800"]
CONTEXT_CALLS = re.compile(r"\b(?:g|pen)\.([a-zA-Z]+)")
NOT_FOR_THE_PEN = {"setTransform", "putImageData", "querySelector", "checks", "isPicture", "measure"}


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    opened = js_page(browser, EXPORTS)
    yield opened
    opened.close()


def picture(page: Page, html: str, script: str = "") -> ElementTree.Element:
    """The picture of what stands in #panel, read by Python's parser."""
    svg = page.evaluate(
        """async ([html, script]) => {
          document.body.innerHTML = `<style>#panel { --card: #fff; --text: #111; --mute: #666 }</style>
            <div id="panel">${html}</div>`;
          const root = document.getElementById('panel');
          new Function('root', script)(root);
          return (await takePicture({root, parts: [root], title: 'Title', source: 'source'})).svg;
        }""",
        [html, script],
    )
    return ElementTree.fromstring(svg.encode())


def texts(svg: ElementTree.Element) -> list[str]:
    return [node.text or "" for node in svg.iter(f"{SVG}text")]


def test_every_token_text_is_legal_xml_and_is_read_back_as_it_stood(page: Page):
    made = "".join(f"<t>{page.evaluate('(text) => xmlText(text)', token)}</t>" for token in ODD_TOKENS[:9])
    alone = page.evaluate("['\\ufffe', '\\ud800', 'a\\udc00b'].map(xmlText)")
    assert alone == ["\ufffd", "\ufffd", "a\ufffdb"]
    read = [node.text for node in ElementTree.fromstring(f"<all>{made}</all>")]
    assert read == [*ODD_TOKENS[:8], "\ufffd\ufffd"]


def test_token_text_in_a_panel_stays_text(page: Page):
    said = "root.append(...tokens.map((text) => Object.assign(document.createElement('p'), {textContent: text})))"
    svg = picture(page, "", f"const tokens = {ODD_TOKENS[:7]!r}; {said}")
    assert texts(svg) == ["Title", *ODD_TOKENS[:7], "source"]
    assert not list(svg.iter(f"{SVG}b"))


def test_a_grid_on_a_canvas_is_a_rectangle_a_cell_and_its_labels_are_text(page: Page):
    """Three rows and four columns, the last row's cells in one colour: cells do not run into each other."""
    paint = """
      root.innerHTML = '<div style="width:80px;height:60px;position:relative"></div>';
      const raster = new Raster();
      makeSurface(root.firstChild, ({g, dpr}) => {
        raster.begin(g, 40 * dpr, 30 * dpr);
        for (let row = 0; row < 3; row++) for (let column = 0; column < 4; column++) {
          const pixel = row < 2 ? 0xff0000ff + column * 256 : 0xff00ff00;
          raster.rect(column * 10 * dpr, row * 10 * dpr, (row < 2 ? 9 : 10) * dpr, 9 * dpr, pixel);
        }
        raster.commit(g, 10 * dpr, 20 * dpr);
        g.font = '12px sans-serif';
        g.fillText('layer <0>', 5, 12);
      });"""
    svg = picture(page, "", paint)
    cells = next(node for node in svg.iter(f"{SVG}g") if node.get("class") == "cells")
    assert len(list(cells.iter(f"{SVG}rect"))) == 12
    fills = {group.get("fill"): [(r.get("x"), r.get("y"), r.get("width")) for r in group] for group in cells}
    assert fills["#00ff00"] == [("10", "40", "10"), ("20", "40", "10"), ("30", "40", "10"), ("40", "40", "10")]
    assert fills["#ff0000"] == [("10", "20", "9"), ("10", "30", "9")]
    assert "layer <0>" in texts(svg)


def test_the_pen_knows_every_call_that_our_painters_make(page: Page):
    painters = [s for name, s in SOURCES.items() if "/picture/" not in name and "checks" not in name]
    called = {call for source in painters for call in CONTEXT_CALLS.findall(source)} - NOT_FOR_THE_PEN
    assert {"fillRect", "fillText", "setLineDash", "clip", "globalAlpha"} <= called
    unknown = page.evaluate("(names) => names.filter((name) => !(name in new SvgPen()))", sorted(called))
    assert unknown == []


def test_wrapped_text_keeps_every_word_and_each_line_its_place(page: Page):
    words = "one two three four five six"
    svg = picture(page, f"<p style='width:60px;margin:0;font:16px/20px sans-serif'>{words}</p>")
    lines = [node for node in svg.iter(f"{SVG}text") if node.text not in ("Title", "source")]
    assert " ".join(node.text or "" for node in lines).split() == words.split()
    tops = [float(node.get("y", "")) for node in lines]
    assert len(tops) > 2
    assert {round(b - a, 1) for a, b in pairwise(tops)} == {20.0}


def test_what_a_panel_cuts_with_an_ellipsis_is_cut_in_the_picture(page: Page):
    svg = picture(
        page, "<p style='width:60px;overflow:hidden;text-overflow:ellipsis;white-space:pre'>a very long token</p>"
    )
    (cut,) = [text for text in texts(svg) if text not in ("Title", "source")]
    assert cut.endswith("…")
    assert "a very long token".startswith(cut[:-1])
    assert len(cut) > 2


def test_hidden_things_are_not_in_the_picture(page: Page):
    hidden = ["display:none", "visibility:hidden", "opacity:0"]
    svg = picture(page, "".join(f"<p style='{style}'>{style}</p>" for style in hidden) + "<p>seen</p>")
    assert texts(svg) == ["Title", "seen", "source"]


SAVE = """async (kind) => {
  document.body.innerHTML = '<div id="panel" style="--card:#102030;--text:#fff;--mute:#ccc"></div>';
  const root = document.getElementById('panel');
  root.innerHTML = '<div style="width:100px;height:50px;background:rgb(200,40,10)"></div>';
  const made = await takePicture({root, parts: [root.firstChild], title: 'Title', source: 'source'});
  const image = await createImageBitmap(await pngFile(made));
  const {width, height} = image;
  const g = Object.assign(document.createElement('canvas'), {width, height}).getContext('2d');
  g.drawImage(image, 0, 0);
  const rect = made.svg.match(/<rect x="0" y="0" width="100" height="50"/);
  const y = Number(made.svg.match(/translate\\(18 ([\\d.]+)\\)/)[1]);
  const at = (x, y) => [...g.getImageData(x, y, 1, 1).data];
  return {width: made.width, height: made.height, png: [image.width, image.height], found: Boolean(rect),
    inside: at(2 * 20, 2 * (y + 2)), beside: at(2 * 10, 2 * (y + 2))};
}"""


def check_png(answer: dict[str, Any]) -> None:
    assert answer["found"]
    assert answer["png"] == [2 * answer["width"], 2 * answer["height"]]
    assert answer["width"] == 320 + 2 * 18
    assert answer["inside"] == [200, 40, 10, 255]
    assert answer["beside"] == [0x10, 0x20, 0x30, 255]


def test_the_png_is_the_picture_at_twice_its_size(page: Page):
    check_png(page.evaluate(SAVE, "png"))


def test_it_works_in_one_file_without_a_server(browser: Browser, tmp_path: Path):
    names = "takePicture, pngFile"
    entry = f"""import {{ {names} }} from './step_page/picture/picture_file.js';
Object.assign(globalThis, {{ {names} }});
export default function entry() {{}}
"""
    sources = needed_for("entry.js", SOURCES | {"entry.js": entry})
    script = f"{words_script(sources.values())}{bundle_js(sources, 'entry.js')}"
    file = tmp_path / "player.html"
    file.write_text(f"<!doctype html><meta charset=utf-8><script type=module>{script}</script>", encoding="utf-8")
    opened = browser.new_page()
    opened.route(re.compile("^https?:"), lambda route: route.abort())
    opened.goto(file.as_uri())
    opened.wait_for_function("() => globalThis.takePicture")
    check_png(opened.evaluate(SAVE, "png"))
    opened.close()


def test_a_file_says_what_it_is_of(page: Page):
    assert page.evaluate("pictureName('attention', 'step-5', 'svg')") == "loupe-attention-step-5.svg"
    assert page.evaluate("pictureName('Memory: “猫” / layer', '', 'png')") == "loupe-memory-layer.png"


def test_the_menu_is_gone_through_by_keyboard_and_saves(page: Page):
    page.evaluate("""() => {
      document.body.innerHTML = '<div id="panel" style="--card:#fff;--text:#111;--mute:#666"><p>shown</p></div>';
      const root = document.getElementById('panel');
      tellSource(root, (name) => ({words: `model · ${name}`, suffix: 'step-7'}));
      root.append(takeAway({name: 'time', title: 'Time', table: () => ({columns: ['a'], rows: [['=1']]}),
        picture: () => ({root, parts: [root.querySelector('p')]})}));
    }""")
    page.get_by_role("button", name="Save: Time").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".take-away")).to_have_attribute("aria-expanded", "true")
    assert page.get_by_role("menuitem").locator("b").all_inner_texts() == ["PNG", "SVG", "CSV"]
    page.keyboard.press("ArrowDown")
    with page.expect_download() as saved:
        page.keyboard.press("Enter")
    assert saved.value.suggested_filename == "loupe-time-step-7.svg"
    svg = ElementTree.fromstring(saved.value.path().read_bytes())
    assert texts(svg) == ["Time", "shown", "model · time"]
    page.keyboard.press("Enter")
    page.keyboard.press("End")
    with page.expect_download() as saved:
        page.keyboard.press("Enter")
    assert saved.value.path().read_bytes() == b"\xef\xbb\xbfa\r\n'=1"
    page.get_by_role("button", name="Save: Time").press("Enter")
    page.keyboard.press("Escape")
    assert page.locator(".take-menu:popover-open").count() == 0
    assert page.evaluate("document.activeElement.className") == "take-away"


def png_size(data: bytes) -> tuple[int, int]:
    """Width and height as the PNG's header says them."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", data[16:24])
    return width, height


def test_the_saved_png_is_as_large_as_its_header_says(page: Page):
    page.evaluate("""() => {
      document.body.innerHTML = '<div id="panel" style="--card:#fff;--text:#111;--mute:#666"><p>x</p></div>';
      document.querySelector('p').style.width = '500px';
      const root = document.getElementById('panel');
      root.append(takeAway({name: 'x', title: 'X', picture: () => ({root, parts: [root.querySelector('p')]})}));
    }""")
    page.locator(".take-away").click()
    with page.expect_download() as saved:
        page.locator("[data-kind=png]").click()
    assert png_size(saved.value.path().read_bytes())[0] == 2 * (500 + 2 * 18)


def test_the_prompt_is_told_by_its_beginning_also_where_a_character_lies_in_two_tokens(page: Page):
    tokens = [{"text": "A\n<b>"}, {"text": None, "hex": "20f09f"}, {"text": None, "hex": "a68a"}, {"text": " drawn"}]
    start = "([tokens, promptLength]) => promptStart({tokens, promptLength})"
    assert page.evaluate(start, [tokens, 3]) == "A <b> 🦊"
    assert page.evaluate(start, [[{"text": "x" * 60}], 1]) == "x" * 48 + "…"
