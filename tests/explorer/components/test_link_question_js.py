"""A link that asks for another model: both answers have their words, and nothing is said before one is given."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser

from tests.explorer.components.js_page import SOURCES, js_page

pytestmark = pytest.mark.browser


def test_the_second_answer_has_its_words_and_nothing_else_is_said(browser: Browser):
    page = js_page(browser, {"link_question.js": "LinkQuestion"})
    found = page.evaluate(
        """() => {
            const said = [];
            const question = new LinkQuestion(document.body, {}, (words) => said.push(words));
            return [question.without.textContent, said];
        }"""
    )
    page.close()
    assert found == ["Go on with the model here", []]


@pytest.mark.parametrize("path", sorted(path for path in SOURCES if path.startswith("step_page/")))
def test_no_parameter_hides_the_function_that_says_sentences(path: str):
    heads = [line for line in SOURCES[path].splitlines() if line.rstrip().endswith(("{", "=>"))]
    assert [line for line in heads if re.search(r"[(,]\s*say\s*[,)]", line)] == []
