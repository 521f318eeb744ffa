"""The Step page's component, registered once when imported, and the element that brings its code.

Streamlit sends a component's scripts and styles again with every change of its data: here 300 kB beside a frame of
15 kB. So they are a component of their own, whose element never changes and is therefore sent once; the component
that gets the frames has a few lines of script, which pick them up (assets/step_page/delivery).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import streamlit as st

from explorer.components.module_bundle import bundle_css, bundle_js, needed_for, read_sources

ASSETS = Path(__file__).resolve().parents[2] / "assets"
ENTRY = "step_page/delivery/code.js"
PAGE = "step_page/delivery/page.js"
NAME = "loupe_step_page"
KEY = "step_page"
CODE_KEY = "step_page_code"


def code_script() -> str:
    """The page's scripts and styles as one module, under its version."""
    styles = f"const STYLES = {json.dumps(bundle_css(read_sources(ASSETS / 'step_page', '.css')))};\n"
    module = styles + bundle_js(needed_for(ENTRY, read_sources(ASSETS, ".js")), ENTRY)
    return version_line(module) + module


def page_script(code: str) -> str:
    """The few lines that wait for `code`, by its version."""
    version_line = code.split("\n", 1)[0]
    return f"{version_line}\n{(ASSETS / PAGE).read_text(encoding='utf-8')}"


def version_line(module: str) -> str:
    """The line that names a module by what is in it."""
    version = hashlib.sha256(module.encode()).hexdigest()[:16]
    return f"const VERSION = '{version}';\n"


_SCRIPT = code_script()
_code = st.components.v2.component("loupe_code", js=_SCRIPT)
_page = st.components.v2.component(NAME, js=page_script(_SCRIPT), isolate_styles=True)


def deliver_code() -> None:
    """Put the scripts and styles on the page; outside of any fragment, or they would come with each of its runs."""
    _code(key=CODE_KEY)


def mount(frame: bytes, on_wire_change: Callable[[], None]) -> Any:
    """Show a frame. What the browser says arrives as `st.session_state[KEY].wire`."""
    return _page(key=KEY, data=frame, on_wire_change=on_wire_change)


def said() -> object:
    """What the browser said, inside the change callback."""
    return st.session_state[KEY].wire
