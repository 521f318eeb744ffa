"""The chart a lab opens on: a component of its own, a thirtieth of Plotly's weight and drawn anew in place."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from explorer.components.component_script import ASSETS, script_of
from explorer.components.module_bundle import bundle_css, read_sources

ENTRY = "labs/chart.js"
COLOURS, TWIN, OWN = "step_page/style/colours.css", "step_page/style/twin.css", "labs/chart.css"


def script() -> str:
    """The component's one module: its own script, and what that uses of the Step page's drawing code."""
    return script_of(ENTRY)


def styles() -> str:
    """Its style sheet: the Step page's colours, under a name that is not the Step page's, its tables, then its own."""
    sheets = read_sources(ASSETS, ".css")
    return bundle_css({COLOURS: sheets[COLOURS].replace(".loupe", ".lab-root"), TWIN: sheets[TWIN], OWN: sheets[OWN]})


_component = st.components.v2.component("loupe_lab_chart", css=styles(), js=script(), isolate_styles=True)


def mount(data: Mapping[str, object], *, key: str, height: int) -> None:
    """Show a chart. It takes its `height` in pixels from the start, so nothing moves when it is drawn."""
    _component(key=key, data=dict(data), height=height)
