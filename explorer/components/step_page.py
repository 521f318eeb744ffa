"""The Step page's component, registered once when imported.

Its data is the secret under which the page speaks to the server; all else goes over the live line (docs/live-line.md).
So the data of an element never changes, and Streamlit sends scripts and styles, 300 kB, once.
"""

from __future__ import annotations

import streamlit as st

from explorer.components.component_source import ASSETS, script_of
from explorer.components.module_bundle import bundle_css, read_sources
from explorer.components.page_values import page_values

ENTRY = "step_page/step_page.js"
NAME = "loupe_step_page"
KEY = "step_page"


def page_script() -> str:
    """The page's scripts as one module, with what they need in front."""
    return f"{page_values()}{script_of(ENTRY)}"


_page = st.components.v2.component(
    NAME, js=page_script(), css=bundle_css(read_sources(ASSETS / "step_page", ".css")), isolate_styles=True
)


def mount(owner: str) -> None:
    """Show the page. `owner` names this browser tab to the server, and whoever knows it speaks as this tab."""
    _page(key=KEY, data={"owner": owner})
