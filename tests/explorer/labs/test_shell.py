"""The stage of a lab: what an answer shows, and what a folded part costs."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from tests.explorer.labs.answers import answer_of, unfold

pytestmark = pytest.mark.usefixtures("app_server")


def answering() -> None:
    from explorer.labs import shell

    said = shell.Answer("{name} keeps {size} of <it>.", {"size": "1 *kB*"}, {"name": "[a](http://evil.example) {size}"})
    shell.answer(said, "computed", "by hand")


def test_names_and_numbers_of_an_answer_stay_text():
    page = AppTest.from_function(answering).run()
    (marked,) = [element.value for element in page.markdown]
    assert "[a](" not in marked and "http://" not in marked.replace("\\", "") and "<it>" not in marked
    assert answer_of(page) == "[a](http://evil.example) {size} keeps 1 *kB* of <it>."


def explaining() -> None:
    from explorer.labs import shell

    shell.source("computed", "by hand", ("softmax", "lower bound"))
    shell.source("computed", "by hand")


def test_the_terms_of_an_answer_are_explained_beside_it():
    explained, bare = AppTest.from_function(explaining).run().caption
    assert explained.help.replace("\\", "").startswith("**softmax**: ")
    assert "**lower bound**: " in explained.help
    assert bare.help == ""


def folding() -> None:
    import streamlit as st

    from explorer.labs import shell

    part = shell.fold("More", key="more", controls=("n",))
    st.text("computed" if part.open else "not computed")


def test_what_is_folded_is_computed_once_it_is_opened_or_a_link_names_a_control_in_it():
    page = AppTest.from_function(folding).run()
    assert page.text[0].value == "not computed"
    assert unfold(page, "more").text[0].value == "computed"
    linked = AppTest.from_function(folding)
    linked.query_params["n"] = "3"
    assert linked.run().text[0].value == "computed"


def moving() -> None:
    import streamlit as st

    from explorer.labs import controls, shell

    part = shell.fold("More", key="more", controls=("n",))
    with part:
        n = controls.whole("N", url="n", default=1, low=1, high=9)
        if part.open:
            st.text(n)


def test_what_was_set_in_a_folded_part_is_there_when_it_is_opened_again():
    page = unfold(AppTest.from_function(moving).run(), "more")
    page.number_input[0].set_value(7).run()
    page.session_state["more"] = False
    assert len(page.run().text) == 0
    assert unfold(page, "more").text[0].value == "7"


def test_a_link_made_while_a_part_is_folded_has_what_was_set_in_it():
    linked = AppTest.from_function(moving)
    linked.query_params["n"] = "7"
    linked.run().session_state["more"] = False
    assert len(linked.run().text) == 0
    assert linked.run().query_params["n"] == "7"
