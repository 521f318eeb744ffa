"""Loupe: a magnifying glass for the decode loop. Start with `streamlit run app.py`."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from explorer.pages import class_page, step
from explorer.runtime import runtime

ICON = Path(__file__).parent / "assets" / "icon.svg"  # a Material icon would be fetched from the internet

st.set_page_config(page_title="Loupe", page_icon=str(ICON), layout="wide")
pages = [st.Page(step.page, title="Loupe", url_path="step", default=True)]
if runtime().hosting.has_class_page:
    pages.append(st.Page(class_page.page, title="The class", url_path="class"))
st.navigation(pages, position="hidden").run()
