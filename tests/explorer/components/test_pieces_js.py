"""How tokens are named and kept from translators, in an empty tab of a real browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.explorer.components.js_page import js_page

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    opened = js_page(browser, {"pieces.js": "quotedToken, renderToken", "dom.js": "make, setText"})
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (" cat", "“ cat”"),
        ("\n", "“⏎”"),
        ("\n\n  ", "“⏎⏎··”"),
        ("  ", "“··”"),
        ("a\u200b", "“aZWSP”"),
        ("é", "“é”"),
    ],
)
def test_a_token_in_a_sentence_is_never_an_empty_pair_of_quotes(page: Page, text: str, named: str):
    assert page.evaluate("(text) => quotedToken({ text })", text) == named


def test_a_token_is_kept_from_translators_and_a_sentence_only_while_it_names_one(page: Page):
    made = page.evaluate(
        """() => {
            const token = renderToken(make('span'), { text: 'on' });
            const line = make('p');
            const states = ['query: “on”', 'nothing to show', 'a', 'a “b”'].map((words) => {
                setText(line, words);
                return [line.translate, line.classList.contains('notranslate')];
            });
            return [token.getAttribute('translate'), token.classList.contains('notranslate'), states];
        }"""
    )
    assert made == ["no", True, [[False, True], [True, False], [True, False], [False, True]]]
