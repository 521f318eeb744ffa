"""The Step page's one component: all scripts and styles of assets/components, registered once when imported."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import streamlit as st

from explorer.components.bundle import bundle_css, bundle_js, read_sources

ASSETS = Path(__file__).resolve().parents[2] / "assets" / "components"
ENTRY = "step_page.js"
KEY = "step_page"

_component = st.components.v2.component(
    "loupe_step_page",
    css=bundle_css(read_sources(ASSETS, ".css")),
    js=bundle_js(read_sources(ASSETS, ".js"), ENTRY),
    isolate_styles=True,
)


def mount(frame: bytes, on_wire_change: Callable[[], None]) -> Any:
    """Show a frame. What the browser says arrives as `st.session_state[KEY].wire`."""
    return _component(key=KEY, data=frame, on_wire_change=on_wire_change)


def said() -> object:
    """What the browser said, inside the change callback."""
    return st.session_state[KEY].wire
