"""The page's sentences: each that a script says stands in words.toml, and none stands there unsaid."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Error

from explorer.components.step_page import page_words
from tests.explorer.components.js_page import SOURCES, js_page

SAID = {
    (path, name)
    for path, source in SOURCES.items()
    if path.startswith("step_page/")
    for name in re.findall(r"\bsay\(\s*'([\w.]+)'", source)
    if not path.endswith("/say.js")
}
THERE = {f"{section}.{name}" for section, sentences in page_words().items() for name in sentences}


def test_every_sentence_that_a_script_says_is_there():
    assert {name for _, name in SAID} - THERE == set()


def test_every_sentence_that_is_there_is_said():
    """A name that a script puts together would be missed: name each in full."""
    assert THERE - {name for _, name in SAID} == set()


def test_a_sentence_takes_its_values_and_refuses_to_go_without(browser: Browser):
    page = js_page(browser, {"say.js": "say"})
    assert page.evaluate("say('panel.what_is', {name: 'a <b>token</b>'})") == "What is a <b>token</b>?"
    with pytest.raises(Error, match=r"panel\.what_is needs a value for \{name\}"):
        page.evaluate("say('panel.what_is')")
    with pytest.raises(Error, match=r"words\.toml has no panel\.nothing"):
        page.evaluate("say('panel.nothing')")
    page.close()
