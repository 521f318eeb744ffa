"""Which pages there are, and under which heading of the menu each stands."""

from __future__ import annotations

import streamlit as st
from streamlit.navigation.page import Page

from explorer.glossary import page as glossary
from explorer.labs import catalogue
from explorer.lessons import page as lessons
from explorer.pages import class_page, step
from explorer.say import words_beside

say = words_beside(__file__)


def pages(*, has_class_page: bool) -> dict[str, list[Page]]:
    """Pages by heading, as `st.navigation` takes them. The class page has an address and no entry: it is the host's."""
    alone = [
        st.Page(step.page, title=say("menu.step"), default=True),
        st.Page(lessons.page, title=say("menu.lessons"), url_path="lessons", help=say("menu.lessons_help")),
        catalogue.as_page(catalogue.CLAIMS),
        st.Page(glossary.page, title=say("menu.glossary"), url_path="glossary", help=say("menu.glossary_help")),
    ]
    if has_class_page:
        alone.append(st.Page(class_page.page, title=say("menu.class_title"), url_path="class", visibility="hidden"))
    alone += [catalogue.moved(before) for before in catalogue.BEFORE]
    return {"": alone, catalogue.SECTION: [catalogue.as_page(lab) for lab in catalogue.LABS]}
