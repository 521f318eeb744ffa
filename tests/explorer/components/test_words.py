"""The page's sentences: each that a script says stands in words.toml, and none stands there unsaid."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Error

from explorer.components.page_words import FILE
from explorer.say import read_words
from tests.explorer.components.js_page import SOURCES, js_page

SAYS = ("step_page/", "lessons/", "player/")
SAID = {
    (path, name)
    for path, source in SOURCES.items()
    if path.startswith(SAYS)
    for name in re.findall(r"\bsay\(\s*'([\w.]+)'", source)
    if not path.endswith("/say.js")
}
THERE = set(read_words(FILE))


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


LITERAL = re.compile(r"'((?:[^'\\\n]|\\.)*)'|`([^`$]*)`")
COMMENT = re.compile(r"/\*.*?\*/|(?<![:'])//[^\n]*", re.DOTALL)
SENTENCE = re.compile(r"^[A-Z“][^.#:\[]*[a-z]{2} [a-z]+ [a-z]+")  # begins like one, and has three words
NO_SENTENCE = ("Loupe: a part of the page",)  # for a developer's console


@pytest.mark.parametrize("path", sorted(path for path in SOURCES if path.startswith(SAYS)))
def test_no_script_has_a_sentence_of_its_own(path: str):
    literals = [one or other for one, other in LITERAL.findall(COMMENT.sub("", SOURCES[path]))]
    assert [text for text in literals if SENTENCE.match(text) and not text.startswith(NO_SENTENCE)] == []
