"""A lesson as plain values: what docs/lessons.md describes, once it has been read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from engine.config import SamplingParams, StopRules
from explorer.lessons.actions import Action, Changes
from explorer.workspace.examples import PromptMode

SpanKind = Literal["text", "strong", "code", "term", "link", "value"]
AskKind = Literal["guess", "choose", "number"]


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a lesson's text. `target` is the term of the glossary, or the address of a link."""

    kind: SpanKind
    text: str
    target: str = ""


Text = tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the answers to choose from."""

    text: Text
    right: bool


@dataclass(frozen=True, slots=True)
class Ask:
    """A question.

    choices  of a "choose", exactly one of them right
    answer   of a "number": a field of the live record by its name, or a number
    within   how far off a number may be, as a share of the right one
    """

    kind: AskKind
    question: Text
    choices: tuple[Choice, ...] = ()
    answer: str | float = ""
    within: float = 0.0


@dataclass(frozen=True, slots=True)
class Scene:
    """What is said and done between two presses of Next.

    line   of its heading in the file, from 1
    do     what the page does when the scene is entered
    you    what the reader does
    then   what is said once that is done, or the question answered
    tour   whether it is part of the three-minute tour
    """

    title: str
    line: int
    text: tuple[Text, ...] = ()
    do: tuple[Action, ...] = ()
    you: Action | None = None
    show: tuple[str, ...] = ()
    ask: Ask | None = None
    then: Text = ()
    tour: bool = False


@dataclass(frozen=True, slots=True)
class Lesson:
    """A whole lesson.

    minutes   how long it takes, as its author says
    model     the name of the model that it was written for
    settings  in force from the beginning; `settings_line` is where the file has them, from 1
    notes     for the teacher, as Markdown; empty where there are none
    """

    id: str
    title: str
    summary: str
    minutes: int
    model: str
    prompt: str
    mode: PromptMode
    seed: int
    settings: Changes
    scenes: tuple[Scene, ...]
    notes: str = ""
    settings_line: int = 1


@dataclass(frozen=True, slots=True)
class RunState:
    """Where a run is: enough to bring it about, and to tell whether it is there.

    afresh   whether the prompt was read by forward passes, and nothing of it copied
    forced   (step, text of the token put there), by step
    history  (step, the sampling settings and the seed with which it and those after it were made)
    """

    prompt: str
    mode: PromptMode
    sampling: SamplingParams
    stop: StopRules
    seed: int
    afresh: bool = False
    steps: int = 0
    forced: tuple[tuple[int, str], ...] = ()
    history: tuple[tuple[int, SamplingParams, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong in a lesson's file, at which line from 1, in words that say the way out."""

    line: int
    words: str
