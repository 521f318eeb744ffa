"""Loupe: a magnifying glass for the decode loop. Start with `streamlit run app.py`."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from explorer.pages import step

ICON = Path(__file__).parent / "assets" / "icon.svg"  # a Material icon would be fetched from the internet

st.set_page_config(page_title="Loupe", page_icon=str(ICON), layout="wide")
st.navigation([st.Page(step.page, title="Loupe", url_path="step", default=True)], position="hidden").run()
