"""The script that Streamlit runs for every visitor: the menu, and the page that is chosen in it."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from explorer.hosting.runtime import runtime
from explorer.pages import menu

ASSETS = Path(__file__).resolve().parents[2] / "assets"  # a Material icon would be fetched from the internet

st.set_page_config(page_title="Loupe", page_icon=str(ASSETS / "icon.svg"), layout="wide")
st.html(ASSETS / "app.css")
st.logo(ASSETS / "word_mark.svg", size="large")
st.navigation(menu.pages(has_class_page=runtime().hosting.has_class_page), position="top").run()
