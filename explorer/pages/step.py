"""The Step page: one element that carries everything. Its script opens the live line, and no script here runs again."""

from __future__ import annotations

from explorer.components import step_page
from explorer.pages import tab_names


def page() -> None:
    """Put the page and the tab's secret where the browser finds them."""
    step_page.mount(tab_names.owner())
