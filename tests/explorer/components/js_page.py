"""Scripts of the page in an empty tab of a real browser, without a server."""

from __future__ import annotations

import base64
from typing import Any

from playwright.sync_api import Browser, Page

from explorer.components.module_bundle import bundle_js, needed_for, read_sources
from explorer.components.page_words import words_script
from explorer.components.step_page import ASSETS
from explorer.live.frame import Planes, pack

ADDRESS = "http://loupe.test/"  # answered by the test itself; a tab's own storage needs an address
SOURCES = read_sources(ASSETS, ".js")
PATHS = {name.rpartition("/")[2]: name for name in SOURCES if name.startswith("step_page/")}


def script(name: str) -> str:
    """The source of one script of the Step page, whichever folder it lies in."""
    return SOURCES[PATHS[name]]


def js_page(browser: Browser, names: dict[str, str]) -> Page:
    """An empty page where what modules export is within reach: {"store.js": "Store, theStore"}."""
    imports = "".join(f"import {{ {exported} }} from './{PATHS[file]}';\n" for file, exported in names.items())
    reach = "".join(f"globalThis.{name.strip()} = {name.strip()};\n" for e in names.values() for name in e.split(","))
    entry = {"entry.js": f"{imports}{reach}globalThis.isReady = true;\nexport default function entry() {{}}\n"}
    opened = browser.new_page()
    opened.route(ADDRESS, lambda route: route.fulfill(body="<title>scripts</title>", content_type="text/html"))
    opened.goto(ADDRESS)
    sources = needed_for("entry.js", SOURCES | entry)
    content = f"{words_script(SOURCES.values())}{bundle_js(sources, 'entry.js')}"
    opened.add_script_tag(type="module", content=content)
    opened.wait_for_function("() => globalThis.isReady")
    return opened


def frame(**header: Any) -> str:
    """A frame as the server packs it, in base64."""
    return base64.b64encode(pack(header, Planes())).decode()
