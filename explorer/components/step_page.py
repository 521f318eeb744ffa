"""The Step page's component, registered once when imported.

Its data is the secret under which the page speaks to the server; all else goes over the live line (docs/live-line.md).
So the data of an element never changes, and Streamlit sends scripts and styles, 300 kB, once.
"""

from __future__ import annotations

import base64
import json
import tomllib
from pathlib import Path

import streamlit as st

from explorer.components.module_bundle import bundle_css, bundle_js, needed_for, read_sources
from explorer.glossary.glossary import terms
from explorer.recordings.first_step import FILE as FIRST_STEP

ASSETS = Path(__file__).resolve().parents[2] / "assets"
ENTRY = "step_page/step_page.js"
NAME = "loupe_step_page"
KEY = "step_page"


def page_words() -> dict[str, dict[str, str]]:
    """The page's sentences, by section and name."""
    return tomllib.loads((ASSETS / "step_page" / "words.toml").read_text(encoding="utf-8"))


def recorded_step() -> str:
    """The frame that is shown until a page has a run of its own, in base64."""
    return base64.b64encode(FIRST_STEP.read_bytes()).decode()


def page_script() -> str:
    """The page's scripts as one module, with the glossary, the page's sentences and a recorded step in front."""
    glossary = [{"name": t.name, "says": t.says, "how": t.how, "where": t.where} for t in terms()]
    scripts = bundle_js(needed_for(ENTRY, read_sources(ASSETS, ".js")), ENTRY)
    values = {"GLOSSARY": glossary, "WORDS": page_words(), "RECORDED": recorded_step()}
    return "".join(f"const {name} = {json.dumps(value)};\n" for name, value in values.items()) + scripts


_page = st.components.v2.component(
    NAME, js=page_script(), css=bundle_css(read_sources(ASSETS / "step_page", ".css")), isolate_styles=True
)


def mount(owner: str) -> None:
    """Show the page. `owner` names this browser tab to the server, and whoever knows it speaks as this tab."""
    _page(key=KEY, data={"owner": owner})
