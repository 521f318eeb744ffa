"""The Claims page as Streamlit runs it: filters, links to one claim, the sheet, and a run on a tiny model."""

from __future__ import annotations

import time

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from explorer.claims.catalogue import CLAIMS
from explorer.claims.measured import NotInAClass, begin
from explorer.hosting.limits import Hosting


@pytest.fixture(autouse=True)
def _server(app_server: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(st, "page_link", lambda *_, **__: None)  # there is no navigation under AppTest


def opened(**params: str) -> AppTest:
    page = AppTest.from_string("from explorer.claims.page import page\npage()", default_timeout=60)
    page.query_params.update(params)
    return page.run()


def words(page: AppTest) -> str:
    found = [*page.text, *page.caption, *page.markdown]
    return " ".join(str(element.value) for element in found)


def count_line(page: AppTest) -> str:
    (line,) = [text.value for text in page.text if " claims: " in text.value]
    return line


def test_all_claims_are_there_with_numbers_computed_for_them():
    page = opened()
    assert not page.exception
    assert count_line(page).startswith(f"{len(CLAIMS)} of {len(CLAIMS)} claims")
    assert "131,072 B" in words(page)
    assert "8,390,656 positions" in words(page)


def test_a_link_filters_by_topic_verdict_and_words():
    page = opened(verdict="wrong")
    wrong = sum(claim.verdict == "wrong" for claim in CLAIMS)
    assert count_line(page) == f"{wrong} of {len(CLAIMS)} claims: {wrong} wrong."
    page = opened(q="gpt-3 fourteen", topic="Nine gigabytes or fourteen")
    assert "truth" in words(page)
    page = opened(q="nothing like this anywhere")
    assert "No claim is like that" in words(page)


def test_a_link_to_one_claim_shows_it_alone_and_a_button_the_others():
    page = opened(claim="a-70b-on-one-h100")
    assert "141 GB do not go into 80" in words(page)
    assert "5,050" not in words(page)
    page.button(key="all_claims").click().run()
    assert "5,050" in words(page)


def test_a_link_to_a_claim_that_is_not_there_is_said():
    page = opened(claim="made-up")
    assert "There is no claim 'made-up'" in words(page)
    assert count_line(page)


def test_the_sheet_is_offered():
    page = opened()
    (button,) = [b for b in page.get("download_button") if b.key == "claims_csv"]
    assert button.label == "CSV"


@pytest.mark.parametrize(
    ("claim_id", "outcome", "found"),
    [
        ("kv-depend-on-the-token-alone", "Did not hold here", "in 1 of 2 layers"),
        ("later-tokens-change-nothing", "Held here", "come out the same"),
        ("temperature-zero-not-repeatable", "Did not hold here", "0 differ"),
    ],
)
def test_a_claim_runs_on_the_loaded_model_and_shows_what_was_measured(claim_id, outcome, found):
    page = opened(claim=claim_id)
    page.button(key=f"run_{claim_id}_begin").click().run()
    for _ in range(100):
        if " here.** " in words(page):
            break
        time.sleep(0.1)
        page.run()
    assert not page.exception
    assert outcome in words(page)
    assert found in words(page)
    assert "float32 on cpu" in words(page)


def test_what_would_hold_up_a_class_is_refused_in_words(pool):
    engine = pool.request().future.result()
    with pytest.raises(NotInAClass, match="everybody in the class"):
        begin(engine, "count_100", Hosting(mode="hosted"), lambda done, total, words: None)
    assert begin(engine, "prefix", Hosting(mode="hosted"), lambda done, total, words: None).result(timeout=60)
