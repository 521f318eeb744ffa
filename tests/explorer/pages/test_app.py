"""The app as Streamlit runs it, on a tiny model: the Step page is one element, and its script speaks for the tab."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from explorer.components import step_page
from explorer.hosting import runtime
from tests.explorer.page_client import Page, prefilled

APP = str(Path(__file__).resolve().parents[3] / "explorer" / "pages" / "main.py")

pytestmark = pytest.mark.usefixtures("app_server")


class App:
    """The app in one browser tab."""

    def __init__(self, **params: str) -> None:
        self.test = AppTest.from_file(APP, default_timeout=60)
        self.test.query_params.update(params)
        self.test.run()

    def element(self) -> Any:
        (found,) = [e.proto for e in self.test.get("bidi_component") if e.proto.component_name == step_page.NAME]
        return found

    def page(self) -> Page:
        """The line that the element's script opens in the browser, with the secret it was given."""
        return Page(runtime.runtime(), owner=json.loads(self.element().json)["owner"])


def lab() -> None:
    import streamlit as st

    from explorer.labs import live

    session = live.session_or_offer("The picture")
    st.json({"text": session and session.records[-1].text})


def test_the_page_is_one_element_that_gets_the_tabs_secret_and_nothing_else():
    app = App()
    assert not app.test.exception
    assert set(json.loads(app.element().json)) == {"owner"}
    assert [kind for kind in ("markdown", "text", "code") if app.test.get(kind)] == []


def test_the_element_never_changes_so_its_scripts_come_once():
    app = App()
    before = app.element().SerializeToString()
    page = app.page()
    prefilled(page)
    app.test.run()
    assert app.element().SerializeToString() == before  # Streamlit sends what did not change as a reference


def test_the_page_opens_while_the_model_is_still_loading():
    app = App()
    assert not runtime.runtime().pool._loadings, "only the line asks for it"
    assert not app.test.exception


def test_two_tabs_have_two_secrets_and_two_sessions():
    first, second = App().page(), App().page()
    assert first.owner != second.owner and len(first.owner) > 16
    assert prefilled(first).header["session"]["sid"] != prefilled(second).header["session"]["sid"]


def test_a_lab_shows_the_run_of_the_step_page_and_the_step_page_one_begun_in_a_lab():
    app = App()
    prefilled(app.page(), "abc")
    here = AppTest.from_function(lab, default_timeout=60)
    here.session_state["loupe_owner"] = app.test.session_state["loupe_owner"]
    assert "abc" not in here.run().json[0].value
    assert json.loads(here.json[0].value)["text"] is not None
    other = App()
    begun = AppTest.from_function(lab, default_timeout=60)
    begun.session_state["loupe_owner"] = other.test.session_state["loupe_owner"]
    begun.run().button(key="prefill_here").click().run()
    assert not begun.exception
    page = other.page()
    assert page.header["how"] == "resumed"
    assert page.header["session"]["prompt"] == "The cat sat"


def test_the_tab_keeps_only_a_name_in_streamlits_session():
    app = App()
    state = app.test.session_state
    assert set(state._state.filtered_state) - {step_page.KEY} == {"loupe_owner"}


def test_a_lab_whose_model_is_not_there_says_so_with_a_way_out(monkeypatch, tmp_path):
    missing = str(tmp_path / "no_$5_*such*_model")
    monkeypatch.setenv("LOUPE_MODEL", missing)
    page = AppTest.from_function(lab, default_timeout=60).run()
    page.button(key="prefill_here").click().run()
    assert not page.exception
    words = " ".join(str(element.value) for kind in ("text", "caption") for element in page.get(kind))
    assert missing in words and "LOUPE_MODEL" in words


def test_a_class_whose_model_is_missing_shows_no_path(monkeypatch, tmp_path):
    missing = str(tmp_path / "gone")
    monkeypatch.setenv("LOUPE_MODE", "hosted")
    monkeypatch.setenv("LOUPE_MODEL", missing)
    page = AppTest.from_function(lab, default_timeout=60).run()
    page.button(key="prefill_here").click().run()
    assert not page.exception
    words = " ".join(str(element.value) for kind in ("text", "subheader") for element in page.get(kind))
    assert missing not in words and "The class cannot begin yet" in words
