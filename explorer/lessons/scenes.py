"""The scenes of a lesson's file: each a heading, what is said, and a list of what is done, shown and asked."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from markdown_it.token import Token

from explorer.lessons.actions import Action, BadAction, parse_action
from explorer.lessons.fields import FIELDS, is_number
from explorer.lessons.front_matter import Blame
from explorer.lessons.lesson import Ask, Choice, Scene, Text
from explorer.lessons.places import PLACES
from explorer.lessons.prose import VALUE, count_words, did_you_mean, markdown, read_prose

MOST_WORDS = 60  # of a scene's text and question
MOST_THEN = 40  # of what is said afterwards
_KEYS = ("do", "you", "show", "guess", "choose", "number", "answer", "within", "then", "tour")


def read_scenes(body: str, blame: Blame) -> tuple[Scene, ...]:
    """All scenes, parted by lines of dashes. `blame` is told what is wrong, and where."""
    reader = _Reader(blame)
    found = (reader.scene(part) for part in _parts(markdown().parse(body)))
    return tuple(scene for scene in found if scene is not None)


@dataclass(frozen=True, slots=True)
class _Reader:
    blame: Blame

    def scene(self, tokens: Sequence[Token]) -> Scene | None:
        if not tokens:
            return None
        line = _line(tokens[0])
        if tokens[0].type != "heading_open" or tokens[0].tag != "h2":
            self.blame(line, "A scene begins with a heading: ## and its title.")
            return None
        title, paragraphs, keys = tokens[1].content, list[Text](), list[_Key]()
        if not title:
            self.blame(line, "A scene needs a title after its ##.")
        i = 3
        while i < len(tokens):
            token = tokens[i]
            if token.type == "paragraph_open" and not keys:
                paragraphs.append(self._prose(tokens[i + 1].content, _line(token)))
                i += 3
            elif token.type == "bullet_list_open" and not keys:
                end = _end_of(tokens, i)
                keys = list(self._keys(tokens[i + 1 : end]))
                i = end + 1
            else:
                self.blame(
                    _line(token),
                    f"A scene has paragraphs, then one list of keys. This is {_NAMES.get(token.type, 'neither')}.",
                )
                i = _end_of(tokens, i) + 1
        return self._made(title, line, tuple(paragraphs), keys)

    def _prose(self, written: str, line: int) -> Text:
        return read_prose(written, lambda words: self.blame(line, words))

    def _keys(self, tokens: Sequence[Token]) -> Iterator[_Key]:
        """The items of a list, "key: value", each with the choices beneath it."""
        i = 0
        while i < len(tokens):
            end = _end_of(tokens, i)
            item = tokens[i + 1 : end]
            line = _line(tokens[i])
            written = item[1].content if len(item) > 1 and item[0].type == "paragraph_open" else ""
            name, colon, value = written.partition(":")
            if not colon or name not in _KEYS:
                self.blame(
                    line,
                    f"A line of the list is a key and a value. {name[:40]!r} is no key; keys are: {', '.join(_KEYS)}.",
                )
            else:
                below = [(_line(t), t.content) for t in item[3:] if t.type == "inline"]
                if below and name != "choose":
                    self.blame(below[0][0], f"Nothing stands beneath {name}. Only choose has a list of its own.")
                yield _Key(line, name, re.sub(r"\s*\n\s*", " ", value).strip(), below)
            i = end + 1

    def _made(self, title: str, line: int, text: tuple[Text, ...], keys: Sequence[_Key]) -> Scene:
        by_name: dict[str, _Key] = {}
        for key in keys:
            if key.name in by_name and key.name != "do":
                self.blame(key.line, f"{key.name} stands twice in this scene.")
            by_name[key.name] = key
        then = by_name.get("then")
        made = Scene(
            title=title,
            line=line,
            text=text,
            do=tuple(act for key in keys if key.name == "do" and (act := self._act(key))),
            you=self._act(by_name["you"]) if "you" in by_name else None,
            show=self._places(by_name.get("show")),
            ask=self._ask(by_name, line),
            then=self._prose(then.value, then.line) if then else (),
            tour=self._tour(by_name.get("tour")),
        )
        self._length(made, line, then)
        self._guesses(made, line)
        return made

    def _guesses(self, scene: Scene, line: int) -> None:
        said = [span.text for text in (*scene.text, scene.then) for span in text if span.kind == "value"]
        if any(name.startswith("guess.") for name in said) and not (scene.ask and scene.ask.kind == "guess"):
            self.blame(line, "{guess.…} is what the reader typed: it needs a guess in the same scene.")

    def _length(self, scene: Scene, line: int, then: _Key | None) -> None:
        said = sum(count_words(part) for part in scene.text) + (count_words(scene.ask.question) if scene.ask else 0)
        if said > MOST_WORDS:
            self.blame(line, f"This scene has {said} words with its question; at most {MOST_WORDS}. Part it in two.")
        if not said:
            self.blame(line, "This scene says nothing. Write a sentence, or a question.")
        if then and count_words(scene.then) > MOST_THEN:
            self.blame(then.line, f"then has {count_words(scene.then)} words; at most {MOST_THEN}.")
        if then and not (scene.you or scene.ask):
            self.blame(
                then.line, "then is said once the reader has done or answered something: add you, or a question."
            )

    def _act(self, key: _Key) -> Action | None:
        try:
            return replace(parse_action(key.value), line=key.line)
        except BadAction as error:
            self.blame(key.line, str(error))
            return None

    def _tour(self, key: _Key | None) -> bool:
        if key and key.value != "yes":
            self.blame(
                key.line, f"tour is yes, got {key.value!r}. Leave the line out where the scene is no part of it."
            )
        return key is not None

    def _places(self, key: _Key | None) -> tuple[str, ...]:
        if key is None:
            return ()
        names = tuple(name.strip() for name in key.value.split(","))
        for name in names:
            if name not in PLACES:
                self.blame(
                    key.line,
                    f"There is no place {name!r}.{did_you_mean(name, list(PLACES))} Places are: {', '.join(PLACES)}.",
                )
        return names

    def _ask(self, keys: dict[str, _Key], line: int) -> Ask | None:
        kinds = [name for name in ("guess", "choose", "number") if name in keys]
        if len(kinds) > 1:
            self.blame(keys[kinds[1]].line, f"A scene asks one question; this one has {' and '.join(kinds)}.")
        for name in ("answer", "within"):
            if name in keys and "number" not in keys:
                self.blame(keys[name].line, f"{name} belongs to a question of the kind number.")
        if not kinds:
            return None
        key = keys[kinds[0]]
        question = self._prose(key.value, key.line)
        if kinds[0] == "guess":
            if "you" in keys:
                self.blame(keys["you"].line, "A guess takes a step by itself: leave you out.")
            return Ask("guess", question)
        if kinds[0] == "choose":
            return Ask("choose", question, choices=self._choices(key))
        return Ask("number", question, answer=self._answer(keys, line), within=self._within(keys.get("within")))

    def _choices(self, key: _Key) -> tuple[Choice, ...]:
        choices = []
        for line, written in key.below:
            found = re.fullmatch(r"\[([ xX])\]\s+(.+)", written, re.DOTALL)
            if found:
                choices.append(Choice(self._prose(found[2], line), found[1] != " "))
            else:
                self.blame(line, f"A choice is written - [ ] wrong or - [x] right, got {written[:40]!r}.")
        if not 2 <= len(choices) <= 5 or sum(choice.right for choice in choices) != 1:
            self.blame(key.line, "choose needs 2 to 5 choices beneath it, indented, exactly one of them - [x].")
        return tuple(choices)

    def _answer(self, keys: dict[str, _Key], line: int) -> str | float:
        key = keys.get("answer")
        if key is None:
            self.blame(line, "number needs an answer: a value such as {step.kv_len}, or a number.")
            return 0.0
        found = VALUE.fullmatch(key.value)
        if found:
            if found[1] not in FIELDS:
                self.blame(key.line, f"There is no value {key.value}.{did_you_mean(found[1], FIELDS)}")
            elif not is_number(found[1]):
                self.blame(key.line, f"{key.value} is no number: {FIELDS[found[1]]}. Ask with choose or guess.")
            return found[1]
        try:
            number = float(key.value.replace(",", ""))
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            self.blame(key.line, f"answer is a value such as {{step.kv_len}}, or a number, got {key.value!r}.")
            return 0.0
        return number

    def _within(self, key: _Key | None) -> float:
        if key is None:
            return 0.0
        found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) *%", key.value)
        if not found or float(found[1]) > 100:
            self.blame(key.line, f"within is a share up to 100 %, such as 10 %, got {key.value!r}.")
            return 0.0
        return float(found[1]) / 100


@dataclass(frozen=True, slots=True)
class _Key:
    """A line of a scene's list, and what is written beneath it, each with its line."""

    line: int
    name: str
    value: str
    below: Sequence[tuple[int, str]]


_NAMES = {
    "heading_open": "another heading", "ordered_list_open": "a numbered list", "fence": "a block of code",
    "blockquote_open": "a quotation", "bullet_list_open": "a second list",
    "paragraph_open": "a paragraph after the list",
}  # fmt: skip


def _parts(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """The tokens between two lines of dashes."""
    start = 0
    for i, token in enumerate(tokens):
        if token.type == "hr" and token.level == 0:
            yield tokens[start:i]
            start = i + 1
    yield tokens[start:]


def _end_of(tokens: Sequence[Token], start: int) -> int:
    """The index of the token that closes the one at `start`; itself where nothing has to."""
    if tokens[start].nesting != 1:
        return start
    depth = 0
    for i in range(start, len(tokens)):
        depth += tokens[i].nesting
        if depth == 0:
            return i
    return len(tokens) - 1


def _line(token: Token) -> int:
    return (token.map or [0])[0] + 1
