"""The tiles lab's picture of one head's walk: a component of its own, in the shared colours and drawing code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from explorer.components.component_source import script_of, styles_of

ENTRY = "labs/tile_walk.js"
KEY = "tile_walk"


def script() -> str:
    """The component's one module: its own script, and what that uses of the Step page's drawing code."""
    return script_of(ENTRY)


def styles() -> str:
    """Its style sheet."""
    return styles_of("labs/tile_walk.css", "step_page/style/take_away.css")


_component = st.components.v2.component("loupe_tile_walk", css=styles(), js=script(), isolate_styles=True)


def mount(frame: bytes, on_tile_change: Callable[[], None]) -> Any:
    """Show a walk. The tile that somebody settled on arrives as `st.session_state[KEY].tile`."""
    return _component(key=KEY, data=frame, on_tile_change=on_tile_change)


def settled() -> int | None:
    """The tile settled on, inside the change callback."""
    tile = st.session_state[KEY].tile
    return int(tile) if isinstance(tile, (int, float)) else None
