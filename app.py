"""Loupe: a magnifying glass for the decode loop. Start with `streamlit run app.py`."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from explorer.labs import catalogue
from explorer.pages import class_page, step
from explorer.runtime import runtime

ASSETS = Path(__file__).parent / "assets"  # a Material icon would be fetched from the internet

st.set_page_config(page_title="Loupe", page_icon=str(ASSETS / "icon.svg"), layout="wide")
st.logo(ASSETS / "word_mark.svg", size="large")
alone = [st.Page(step.page, title="Step", default=True), catalogue.as_page(catalogue.CLAIMS)]
if runtime().hosting.has_class_page:
    alone.append(st.Page(class_page.page, title="The class", url_path="class"))
labs = [catalogue.as_page(lab) for lab in catalogue.LABS]
st.navigation({"": alone, catalogue.SECTION: labs}, position="top").run()
