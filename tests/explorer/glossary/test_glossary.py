"""The glossary: every term once, in two plain sentences, and found by any of its spellings."""

from __future__ import annotations

import re

import pytest
from streamlit.testing.v1 import AppTest

from explorer.glossary.glossary import Term, found, named, terms


def test_there_are_some_sixty_terms_and_no_spelling_leads_to_two():
    spellings = [spelling.lower() for term in terms() for spelling in (term.name, *term.also)]
    assert len(terms()) >= 60
    assert len(set(spellings)) == len(spellings)


@pytest.mark.parametrize("term", terms(), ids=lambda term: term.name)
def test_a_term_is_told_in_two_sentences_of_at_most_fifty_words_and_says_where_to_try_it(term: Term):
    sentences = re.findall(r"[.?!](?:\s|$)", term.says)
    assert len(sentences) == 2, term.says
    assert len(term.says.split()) <= 50
    assert term.where.endswith(".") and (not term.how or term.how.endswith("."))


def test_a_search_finds_a_term_by_another_spelling_and_the_named_one_first():
    assert found("grouped-query")[0].name == "GQA"
    assert found("KV CACHE")[0].name == "KV cache"
    assert found("zebra") == ()
    assert found("") == terms()


def test_the_page_shows_what_a_search_finds():
    page = AppTest.from_string("from explorer.glossary.page import page\npage()", default_timeout=30)
    page.query_params["search"] = "nucleus"
    page.run()
    assert not page.exception
    assert [heading.value for heading in page.subheader] == ["top\\-p"]


def test_terms_are_had_by_their_names_in_the_order_asked_for_and_a_name_that_is_none_is_an_error():
    assert [term.name for term in named(("softmax", "KV cache"))] == ["softmax", "KV cache"]
    with pytest.raises(KeyError, match="kv"):
        named(("kv",))
