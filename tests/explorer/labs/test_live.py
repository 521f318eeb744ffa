"""A lab and the live session: the one on the Step page, or one begun here, on a tiny model."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from explorer.hosting import runtime

pytestmark = pytest.mark.usefixtures("app_server")


def lab_page() -> None:
    import streamlit as st

    from explorer.labs import live

    session = live.session_or_offer("The picture")
    engine = live.loaded_engine()
    st.json({"kv_len": session and session.records[-1].kv_len, "model": engine and engine.info.num_layers})


def shown(page: AppTest) -> dict[str, object]:
    import json

    got: dict[str, object] = json.loads(page.json[0].value)
    return got


def test_without_a_run_the_page_says_what_to_do_and_loads_no_model():
    page = AppTest.from_function(lab_page, default_timeout=60).run()
    assert not page.exception
    assert shown(page) == {"kv_len": None, "model": None}
    assert page.text[0].value.startswith("The picture needs a run")
    assert not runtime.runtime().pool._loadings


def test_a_run_begun_in_a_lab_is_the_tabs_own():
    page = AppTest.from_function(lab_page, default_timeout=60).run()
    page.button(key="prefill_here").click().run()
    assert not page.exception
    assert shown(page) == {"kv_len": len("The cat sat"), "model": 2}
    tab = runtime.runtime().tab_of(page.session_state["loupe_owner"])
    assert tab is not None and tab.workspace.prompt == "The cat sat"
    assert len(runtime.runtime().tabs) == 1


def test_a_lab_shows_the_run_of_its_own_tab_and_no_others():
    first, second = (AppTest.from_function(lab_page, default_timeout=60).run() for _ in range(2))
    first.button(key="prefill_here").click().run()
    second.run()
    assert shown(second)["kv_len"] is None


def test_a_run_whose_engine_ended_is_brought_back_and_not_replaced():
    page = AppTest.from_function(lab_page, default_timeout=60).run()
    page.button(key="prefill_here").click().run()
    there = runtime.runtime()
    tab = there.tab_of(page.session_state["loupe_owner"])
    assert tab is not None
    assert there.perform(tab, "step", {}).error is None
    drawn = tab.workspace.active.session.recipe.token_ids
    tab.workspace.engine.close()
    page.run()
    assert shown(page) == {"kv_len": None, "model": None}
    page.button(key="prefill_here").click().run()
    assert not page.exception
    assert tab.workspace.engine.is_alive and tab.workspace.active.session.recipe.token_ids == drawn
    assert shown(page)["kv_len"] == len(drawn) - 1


def test_a_run_begun_in_a_lab_steps_alone_where_the_tab_does():
    page = AppTest.from_function(lab_page, default_timeout=60).run()
    page.button(key="prefill_here").click().run()
    tab = runtime.runtime().tab_of(page.session_state["loupe_owner"])
    assert tab is not None
    for op, args in (("reset", {}), ("settings", {"solo": True})):
        assert runtime.runtime().perform(tab, op, args).error is None
    page.run()
    page.button(key="prefill_here").click().run()
    assert tab.workspace.solo and tab.workspace.active.session.solo


def full_class_page() -> None:
    import streamlit as st

    from explorer.labs import live, shell

    shell.lab("A lab", "What does it take?")
    st.metric("computed", 3)
    session = live.session_or_offer("The picture")
    st.json({"kv_len": session and session.records[-1].kv_len})


def test_in_a_full_class_a_lab_computes_and_only_a_run_waits_in_line(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LOUPE_MODE", "hosted")
    monkeypatch.setenv("LOUPE_MAX_SESSIONS", "1")
    first, second = (AppTest.from_function(full_class_page, default_timeout=60).run() for _ in range(2))
    first.button(key="prefill_here").click().run()
    assert shown(first)["kv_len"] == len("The cat sat")
    second.button(key="prefill_here").click().run()
    assert not second.exception
    assert [metric.value for metric in second.metric] == ["3"]
    assert "The class is full" in [heading.value for heading in second.subheader]
    there = runtime.runtime()
    there.tabs.drop(there.tabs.of_owner(first.session_state["loupe_owner"]))
    second.run()
    assert not second.exception
    assert shown(second)["kv_len"] == len("The cat sat")


def engine_page() -> None:
    import streamlit as st

    from explorer.labs import live

    engine = live.engine()
    st.json({"model": engine and engine.info.num_layers})


def test_a_lab_that_needs_only_the_model_loads_it_and_opens_no_session():
    page = AppTest.from_function(engine_page, default_timeout=60).run()
    assert not page.exception
    assert shown(page) == {"model": 2}
    there = runtime.runtime()
    assert len(there.tabs) == 0
    assert [loading.users for loading in there.pool._loadings.values()] == [0]
