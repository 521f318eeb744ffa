"""The tiles lab's picture of one head's walk: a component of its own, in the shared colours and drawing code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from explorer.components.bundle import bundle_css, bundle_js, read_sources
from explorer.components.step_page import ASSETS

ENTRY = "tile_walk.js"
SHARED = ("canvas.js", "dom.js", "format.js", "frame.js", "palette.js", "pieces.js")
LABS = ASSETS.parent / "labs"
KEY = "tile_walk"


def script() -> str:
    """The component's one module."""
    shared = read_sources(ASSETS, ".js")
    own = read_sources(LABS, ".js")
    return bundle_js({**{name: shared[name] for name in SHARED}, ENTRY: own[ENTRY]}, ENTRY)


def styles() -> str:
    """Its style sheet: the page's colours, then its own."""
    name = "colours.css"
    return bundle_css(
        {name: read_sources(ASSETS, ".css")[name], "tile_walk.css": read_sources(LABS, ".css")["tile_walk.css"]}
    )


_component = st.components.v2.component("loupe_tile_walk", css=styles(), js=script(), isolate_styles=True)


def mount(frame: bytes, on_tile_change: Callable[[], None]) -> Any:
    """Show a walk. The tile that somebody settled on arrives as `st.session_state[KEY].tile`."""
    return _component(key=KEY, data=frame, on_tile_change=on_tile_change)


def settled() -> int | None:
    """The tile settled on, inside the change callback."""
    tile = st.session_state[KEY].tile
    return int(tile) if isinstance(tile, (int, float)) else None
