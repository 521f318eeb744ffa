"""The sentences that a page shows, from the words.toml beside its files: one place to read them, and to translate them.

The same form as the Step page's (assets/step_page/words.toml): sections of names, and places in braces.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Say:
    """say("section.name", place=value) is the sentence with its places filled; `unfilled` has them as they are."""

    sentences: Mapping[str, str]

    def __call__(self, name: str, /, **values: object) -> str:
        return self.sentences[name].format(**values)

    def unfilled(self, name: str, /) -> str:
        """For whoever fills the places: the large answer of a lab sets its numbers off."""
        return self.sentences[name]


def words_beside(file: str) -> Say:
    """The words of the folder that `file` lies in."""
    return Say(read_words(Path(file).resolve().parent / "words.toml"))


@functools.cache
def read_words(file: Path) -> Mapping[str, str]:
    """Every sentence of a words.toml by its name, "section.name"."""
    sections = tomllib.loads(file.read_text(encoding="utf-8"))
    return {f"{section}.{name}": words for section, named in sections.items() for name, words in named.items()}
