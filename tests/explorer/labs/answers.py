"""What a lab's page says first, as it is read, and its folded parts."""

from __future__ import annotations

import re

from streamlit.testing.v1 import AppTest


def answer_of(page: AppTest) -> str:
    """The large sentence at the top, without its markup."""
    marked = next(element.value for element in page.markdown if ":primary[" in element.value)
    return re.sub(r"\\(.)", r"\1", re.sub(r":primary\[\*\*(.*?)\*\*\]", r"\1", marked)).replace("\u2060", "")


def unfold(page: AppTest, *keys: str) -> AppTest:
    """Open folded parts by their keys."""
    for key in keys:
        page.session_state[key] = True
    page.run()
    assert not page.exception
    return page
