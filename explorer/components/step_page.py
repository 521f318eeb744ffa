"""The Step page's component, registered once when imported.

Its data is the secret under which the page speaks to the server; all else goes over the live line (docs/live-line.md).
So the data of an element never changes, and Streamlit sends scripts and styles, 300 kB, once.
"""

from __future__ import annotations

import base64
import json

import streamlit as st

from explorer.components.component_source import ASSETS, script_of
from explorer.components.module_bundle import bundle_css, read_sources
from explorer.glossary.glossary import terms
from explorer.recordings.first_step import FILE as FIRST_STEP

ENTRY = "step_page/step_page.js"
NAME = "loupe_step_page"
KEY = "step_page"


def recorded_step() -> str:
    """The frame that is shown until a page has a run of its own, in base64."""
    return base64.b64encode(FIRST_STEP.read_bytes()).decode()


def page_script() -> str:
    """The page's scripts as one module, with the glossary, the page's sentences and a recorded step in front."""
    glossary = [{"name": t.name, "says": t.says, "how": t.how, "where": t.where} for t in terms()]
    values = {"GLOSSARY": glossary, "RECORDED": recorded_step()}
    in_front = "".join(f"const {name} = {json.dumps(value)};\n" for name, value in values.items())
    return f"{in_front}{script_of(ENTRY)}"


_page = st.components.v2.component(
    NAME, js=page_script(), css=bundle_css(read_sources(ASSETS / "step_page", ".css")), isolate_styles=True
)


def mount(owner: str) -> None:
    """Show the page. `owner` names this browser tab to the server, and whoever knows it speaks as this tab."""
    _page(key=KEY, data={"owner": owner})
