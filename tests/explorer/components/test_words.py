"""The page's sentences: each that a script says stands in words.toml, and none stands there unsaid."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Error

from explorer.components.page_words import FILE
from explorer.plurals import RULES, category
from explorer.say import forms, language_of, read_words
from tests.explorer.components.js_page import SOURCES, js_page

SAYS = ("step_page/", "lessons/", "player/", "labs/tile_walk.js")
SAID = {
    (path, name)
    for path, source in SOURCES.items()
    if path.startswith(SAYS)
    for name in re.findall(r"\bsay(?:Nodes)?\(\s*'([\w.]+)'", source)
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


def test_a_node_stands_where_the_sentence_has_it(browser: Browser):
    page = js_page(browser, {"say.js": "sayNodes"})
    made = page.evaluate(
        """() => {
            const bold = document.createElement('b');
            bold.textContent = '<i>on</i>';
            const line = document.createElement('p');
            line.append(...sayNodes('stations.goes_in_next', { token: bold, position: 3 }));
            return [line.innerHTML, line.firstChild === bold];
        }"""
    )
    page.close()
    assert made == ["<b>&lt;i&gt;on&lt;/i&gt;</b> goes in next, at position 3", True]


def test_a_sentence_is_whole():
    """A piece of another one, with a blank or a comma where it was cut, could not be put in another order."""
    for name, words in read_words(FILE).items():
        for form in forms(words):
            assert form == form.strip(), f"{name} begins or ends with a blank: {form!r}"
            assert form[0] not in ",;:.·", f"{name} goes on where another stops: {form!r}"


@pytest.mark.parametrize(("n", "said"), [(0, "0 tokens"), (1, "1 token"), (2, "2 tokens"), (49_152, "49,152 tokens")])
def test_a_count_takes_its_form(browser: Browser, n: int, said: str):
    page = js_page(browser, {"say.js": "say"})
    assert page.evaluate("(n) => say('counted.token', { n })", n) == said
    with pytest.raises(Error, match=r"counted\.token has a form for each count: n must be a number, got 3 tokens"):
        page.evaluate("say('counted.token', { n: '3 tokens' })")
    page.close()


def test_a_count_has_a_form_for_each_category_of_the_language_and_each_form_the_same_places():
    for name, words in read_words(FILE).items():
        if not isinstance(words, str):
            assert set(words) == {category(language_of(FILE), n) for n in range(200)}, name
            places = {frozenset(re.findall(r"\{(\w+)\}", form)) - {"n", "last"} for form in words.values()}
            assert len(places) == 1, name  # a tile of one key has no last one


def test_plurals_are_those_of_a_browser(browser: Browser):
    page = js_page(browser, {"say.js": "say"})
    found = page.evaluate(
        "(codes) => codes.map((code) => { const of = new Intl.PluralRules(code);"
        " return Array.from({ length: 1200 }, (_, n) => of.select(n)); })",
        list(RULES),
    )
    page.close()
    for code, categories in zip(RULES, found, strict=True):
        assert [category(code, n) for n in range(1200)] == categories, code


LITERAL = re.compile(r"'((?:[^'\\\n]|\\.)*)'|`([^`$]*)`")
COMMENT = re.compile(r"/\*.*?\*/|(?<![:'])//[^\n]*", re.DOTALL)
SENTENCE = re.compile(r"^[A-Z“][^.#:\[]*[a-z]{2} [a-z]+ [a-z]+")  # begins like one, and has three words
NO_SENTENCE = ("Loupe: a part of the page",)  # for a developer's console


@pytest.mark.parametrize("path", sorted(path for path in SOURCES if path.startswith(SAYS)))
def test_no_script_has_a_sentence_of_its_own(path: str):
    literals = [one or other for one, other in LITERAL.findall(COMMENT.sub("", SOURCES[path]))]
    assert [text for text in literals if SENTENCE.match(text) and not text.startswith(NO_SENTENCE)] == []
