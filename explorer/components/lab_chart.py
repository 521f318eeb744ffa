"""The chart a lab opens on: a component of its own, a thirtieth of Plotly's weight and drawn anew in place."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from explorer.components.component_source import script_of, styles_of

STYLES = styles_of("step_page/style/twin.css", "step_page/style/take_away.css", "labs/chart.css", root=".lab-root")

_component = st.components.v2.component(
    "loupe_lab_chart", css=STYLES, js=script_of("labs/chart.js"), isolate_styles=True
)


def mount(data: Mapping[str, object], *, key: str, height: int) -> None:
    """Show a chart. It takes its `height` in pixels from the start, so nothing moves when it is drawn."""
    _component(key=key, data=dict(data), height=height)
