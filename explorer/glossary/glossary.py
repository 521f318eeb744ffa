"""The glossary: terms of the field in plain English, read from terms.toml once.

The Step page gets the same terms with its scripts, so that a word is explained in one place for all pages.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).resolve().parent / "terms.toml"


@dataclass(frozen=True, slots=True)
class Term:
    """One term.

    says  what it is, in two plain sentences
    also  other spellings of it
    how   how its number is made here; empty where it has none
    where  where to try it
    """

    name: str
    says: str
    where: str
    also: tuple[str, ...] = ()
    how: str = ""


@functools.cache
def terms() -> tuple[Term, ...]:
    """All terms, in alphabetical order."""
    rows = tomllib.loads(FILE.read_text(encoding="utf-8"))["term"]
    made = [Term(row["name"], row["says"], row["try"], tuple(row.get("also", ())), row.get("how", "")) for row in rows]
    return tuple(sorted(made, key=lambda term: term.name.lower()))


def named(names: Iterable[str]) -> tuple[Term, ...]:
    """The terms of these names, in the same order. Raises KeyError where the glossary has none of that name."""
    known = {term.name: term for term in terms()}
    return tuple(known[name] for name in names)


def found(words: str, among: Sequence[Term] | None = None) -> tuple[Term, ...]:
    """Terms that have all words in their name, spellings or text; those that have them in the name come first."""
    wanted = words.lower().split()
    hits = [term for term in (among or terms()) if all(word in _text_of(term) for word in wanted)]
    return tuple(sorted(hits, key=lambda term: not all(word in _names_of(term) for word in wanted)))


def _names_of(term: Term) -> str:
    return " ".join((term.name, *term.also)).lower()


def _text_of(term: Term) -> str:
    return f"{_names_of(term)} {term.says} {term.how}".lower()
