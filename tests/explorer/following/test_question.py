"""One answer a follower, replaced until the reveal; what is not an answer is refused in words."""

from __future__ import annotations

import pytest

from explorer.following.question import Asked, Question, read_question
from explorer.operations.checked import BadCommand

TOKEN = Question("What comes next?", "token")
CHOICE = Question("Which?", "choice", ("more", "less"))
NUMBER = Question("How many?", "number")


def test_a_second_answer_replaces_the_first():
    asked = Asked(TOKEN)
    asked.answer("a", " mat")
    asked.answer("b", " sofa")
    asked.answer("a", " sofa")
    assert asked.counts() == {" sofa": 2}


def test_after_the_reveal_an_answer_is_told_that_it_is_late_and_counts_for_nothing():
    asked = Asked(TOKEN)
    asked.answer("a", " mat")
    assert asked.reveal() == {" mat": 1}
    with pytest.raises(BadCommand, match="too late"):
        asked.answer("a", " sofa")
    assert asked.counts() == {" mat": 1}


@pytest.mark.parametrize(
    ("question", "given"),
    [
        (TOKEN, ""),
        (TOKEN, "a" * 61),
        (TOKEN, 7),
        (TOKEN, None),
        (CHOICE, "neither"),
        (CHOICE, ["more"]),
        (NUMBER, "7"),
        (NUMBER, True),
        (NUMBER, float("nan")),
        (NUMBER, 10**400),
        pytest.param(NUMBER, 10**5000, id="five thousand digits"),
    ],
)
def test_what_is_no_answer_is_refused_and_the_one_before_stays(question, given):
    asked = Asked(question)
    good = {"token": " mat", "choice": "more", "number": 7}[question.kind]
    asked.answer("a", good)
    with pytest.raises(BadCommand) as refused:
        asked.answer("a", given)
    assert len(str(refused.value)) < 200
    assert sum(asked.counts().values()) == 1


def test_a_thousand_answers_of_one_follower_are_one():
    asked = Asked(NUMBER)
    for number in range(1000):
        asked.answer("a", number)
    assert asked.counts() == {"999": 1}


def test_equal_numbers_are_counted_together():
    asked = Asked(NUMBER)
    asked.answer("a", 7)
    asked.answer("b", 7.0)
    assert asked.counts() == {"7": 2}


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"text": " ", "kind": "token"}, "empty"),
        ({"text": "a" * 301, "kind": "token"}, "301"),
        ({"text": "?", "kind": "essay"}, "token, choice or number"),
        ({"text": "?", "kind": "choice", "choices": ["more"]}, "two or more"),
        ({"text": "?", "kind": "choice", "choices": ["more", "more"]}, "different"),
        ({"text": "?", "kind": "choice", "choices": ["more", " "]}, "two or more"),
        ({"text": "?", "kind": "choice", "choices": [str(n) for n in range(9)]}, "9 entries"),
        ({"text": 3, "kind": "token"}, "text"),
    ],
)
def test_what_is_no_question_is_refused(asked, words):
    with pytest.raises(BadCommand, match=words):
        read_question(asked)
