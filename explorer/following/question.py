"""A question to the class: one answer a follower, counted without names, shown to all at once."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from explorer.live.frame import Json
from explorer.operations import checked
from explorer.operations.checked import BadCommand, short

Kind = Literal["token", "choice", "number"]
LONGEST_TOKEN = 60  # characters
LONGEST_QUESTION, LONGEST_CHOICE, MOST_CHOICES = 300, 100, 8
MOST_SHOWN = 24  # different answers


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked.

    choices  those of a choice
    step     the step whose token is asked for; None: no step's
    """

    text: str
    kind: Kind
    choices: tuple[str, ...] = ()
    step: int | None = None

    def json(self) -> dict[str, Json]:
        """As pages get it."""
        return {"text": self.text, "kind": self.kind, "choices": list(self.choices), "step": self.step}


def read_question(args: Mapping[str, object]) -> Question:
    """What a leader asks. Raises BadCommand."""
    text = checked.text(args.get("text"), "text", LONGEST_QUESTION).strip()
    if not text:
        raise BadCommand("The question is empty. Type it first.")
    choices = tuple(
        checked.text(one, "a choice", LONGEST_CHOICE).strip()
        for one in checked.sequence(args.get("choices", []), "choices", MOST_CHOICES)
    )
    step = None if args.get("step") is None else checked.whole(args["step"], "step", 0, 2**31)
    kind = args.get("kind")
    if kind == "choice":
        if len(set(choices)) < 2 or not all(choices) or len(set(choices)) < len(choices):
            raise BadCommand("A choice needs two or more different answers, one a line.")
        return Question(text, "choice", choices, step)
    if kind == "token" or kind == "number":
        return Question(text, kind, (), step)
    raise BadCommand(f"kind must be token, choice or number, got {short(kind)}.")


class Asked:
    """A question that is open until it is revealed."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self.is_revealed = False
        self._answers: dict[str, str] = {}

    def answer(self, follower: str, given: object) -> None:
        """Take an answer; a second one of the same follower replaces the first. Raises BadCommand."""
        if self.is_revealed:
            raise BadCommand("The answers have been shown already. Yours came too late to be counted.")
        self._answers[follower] = self._read(given)

    def counts(self) -> Mapping[str, int]:
        """How many gave each answer, the most frequent first."""
        return dict(sorted(Counter(self._answers.values()).items(), key=lambda pair: (-pair[1], pair[0])))

    def json(self, *, shows_answers: bool) -> dict[str, Json]:
        """The question; how many have answered; and, for the leader or after the reveal, what."""
        counts = list(self.counts().items())[:MOST_SHOWN] if shows_answers or self.is_revealed else None
        answers: Json = None if counts is None else [[answer, count] for answer, count in counts]
        return {
            **self.question.json(),
            "revealed": self.is_revealed,
            "answered": len(self._answers),
            "answers": answers,
        }

    def reveal(self) -> Mapping[str, int]:
        """Close the question."""
        self.is_revealed = True
        return self.counts()

    def _read(self, given: object) -> str:
        if self.question.kind == "number":
            return _number(given)
        if not isinstance(given, str) or not given:
            raise BadCommand(f"An answer to this question is text, got {short(given)}.")
        if self.question.kind == "choice":
            if given not in self.question.choices:
                raise BadCommand(f"{short(given)} is not one of the choices. Choose one that is on screen.")
        elif len(given) > LONGEST_TOKEN:
            raise BadCommand(f"A token has at most {LONGEST_TOKEN} characters here, got {len(given)}. Shorten it.")
        return given


def _number(given: object) -> str:
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise BadCommand(f"An answer to this question is a number, got {short(given)}.")
    try:
        number = float(given)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise BadCommand(f"An answer to this question is a finite number, got {short(given)}.")
    return f"{number:.15g}"
