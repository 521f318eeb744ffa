"""The sentences that a page shows, from the words.toml beside its files: one place to read them, and to translate them.

The same form as the Step page's (assets/step_page/words.toml): sections of names, and places in braces. A sentence
about a count is a table of its forms, by the categories of the file's language (explorer/plurals.py); `n` is the count:

    tokens = {one = "{n} token", other = "{n} tokens"}
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from explorer.plurals import category

Words = str | Mapping[str, str]
ENGLISH = "en"


@dataclass(frozen=True, slots=True)
class Say:
    """say("section.name", place=value) is the sentence with its places filled; `unfilled` has them as they are."""

    sentences: Mapping[str, Words]
    language: str = ENGLISH

    def __call__(self, name: str, /, **values: object) -> str:
        words = self.sentences[name]
        if isinstance(words, str):
            return words.format(**values)
        n = values["n"]
        if not isinstance(n, int):
            raise TypeError(f"{name} has a form for each count, so n must be a whole number, got {n!r}.")
        return words[category(self.language, n)].format(**values | {"n": f"{n:,}"})

    def unfilled(self, name: str, /) -> str:
        """For whoever fills the places: the large answer of a lab sets its numbers off."""
        words = self.sentences[name]
        assert isinstance(words, str), f"{name} is about a count: say it, and put it into another sentence"
        return words


def words_beside(file: str) -> Say:
    """The words of the folder that `file` lies in."""
    beside = Path(file).resolve().parent / "words.toml"
    return Say(read_words(beside), language_of(beside))


@functools.cache
def read_words(file: Path) -> Mapping[str, Words]:
    """Every sentence of a words.toml by its name, "section.name"."""
    return {
        f"{section}.{name}": words
        for section, named in _parsed(file).items()
        if isinstance(named, dict)
        for name, words in named.items()
    }


def language_of(file: Path) -> str:
    """The language of a words.toml: its line `language`, above all sections; English where there is none."""
    return str(_parsed(file).get("language", ENGLISH))


def forms(words: Words) -> tuple[str, ...]:
    """Every form of a sentence; one, where it is about no count."""
    return (words,) if isinstance(words, str) else tuple(words.values())


@functools.cache
def _parsed(file: Path) -> Mapping[str, object]:
    return tomllib.loads(file.read_text(encoding="utf-8"))
