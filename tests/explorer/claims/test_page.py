"""The Claims page as Streamlit runs it: filters, links to one claim, the sheet, and a run on a tiny model."""

from __future__ import annotations

import time

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from explorer.claims.catalogue import CLAIMS, TOPICS
from explorer.claims.heard import deciding, heard, short
from explorer.claims.measured import NotInAClass, begin
from explorer.hosting.limits import Hosting
from explorer.labs.shell import escaped


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


def lines(page: AppTest, place: str) -> list[str]:
    """The lines that open to a card at one place of the page."""
    keyed = [e for e in page.get("expander") if f"-{place}_" in str(e.proto)]
    return [str(e.label) for e in keyed]


def test_the_page_opens_on_how_many_hold_and_the_ten_with_their_numbers():
    page = opened()
    assert not page.exception
    exact, wrong = (sum(claim.verdict == verdict for claim in CLAIMS) for verdict in ("exact", "wrong"))
    assert f"Of :primary[**{len(CLAIMS)}**] claims about decoding, :primary[**{exact}**] hold exactly" in words(page)
    assert f":primary[**{wrong}**] are wrong" in words(page)
    ten = lines(page, "heard")
    assert len(ten) == 10
    assert ten[1].startswith("**Without a KV cache, 100 tokens take 5,050 positions.** :green-badge[")
    assert "**50.5 ×** as many as with a cache" in ten[1]
    assert "128,256 logits" in ten[0]
    assert "131,072 B" not in words(page), "no card is drawn while all are folded"


def test_each_of_the_ten_is_decided_by_a_number_of_its_claim():
    for claim in heard():
        assert any(f"**{escaped(short(number))}**" in deciding(claim) for number in claim.numbers), claim.id


def test_every_topic_is_there_folded_and_counts_its_claims():
    page = opened()
    topics = lines(page, "fold")
    assert len(topics) == len(TOPICS)
    assert topics[0] == "**The model and the loop** :gray[9 claims: 3 exact, 5 conditional, 1 wrong]"
    assert lines(page, "topic") == []


def test_a_link_filters_by_topic_verdict_and_words():
    wrong = sum(claim.verdict == "wrong" for claim in CLAIMS)
    page = opened(verdict="wrong")
    assert f"{wrong} of {len(CLAIMS)} claims: {wrong} wrong." in words(page)
    assert len(lines(page, "match")) == wrong
    assert lines(page, "heard") == []
    page = opened(q="gpt-3 fourteen", topic="Nine gigabytes or fourteen")
    assert "really takes fourteen" in lines(page, "match")[0]
    page = opened(q="nothing like this anywhere")
    assert "No claim matches" in words(page)


def test_a_link_to_one_claim_shows_it_alone_and_a_button_the_others():
    page = opened(claim="a-70b-on-one-h100")
    assert "141 GB do not fit into 80" in words(page)
    assert lines(page, "heard") == []
    page.button(key="all_claims").click().run()
    assert len(lines(page, "heard")) == 10


def test_a_link_to_a_claim_that_is_not_there_is_said():
    page = opened(claim="made-up")
    assert "There is no claim “made-up”" in words(page)
    assert len(lines(page, "heard")) == 10


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
    page.button(key=f"alone_run_{claim_id}_begin").click().run()
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
