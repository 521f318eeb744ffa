"""The sentences of the Python pages: each that a page says stands in its words.toml with these places, none unsaid."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pytest

from explorer.say import Say, words_beside

EXPLORER = Path(__file__).resolve().parents[2] / "explorer"
FOLDERS = sorted(path.parent for path in EXPLORER.rglob("words.toml"))


def calls(folder: Path) -> Iterator[tuple[str, frozenset[str] | None]]:
    """Names that the scripts of a folder say, with the places they fill; None where those are put together.

    A name that ends in what is put together stands for its whole section: "check." for f"check.{name}".
    """
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and (function := ast.unparse(node.func)) in ("say", "say.unfilled"):
                name = node.args[0]
                given = frozenset(keyword.arg or "" for keyword in node.keywords)
                is_whole = isinstance(name, ast.Constant) and function == "say" and "" not in given
                first = name.values[0] if isinstance(name, ast.JoinedStr) else name
                yield str(ast.literal_eval(first)), given if is_whole else None


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_sentence_is_there_with_its_places_and_every_one_that_is_there_is_said(folder: Path):
    there = {name: places(words) for name, words in words_beside(str(folder / "page.py")).sentences.items()}
    said = list(calls(folder))
    assert {name for name, _ in said if not name.endswith(".")} - set(there) == set()
    assert [(name, given) for name, given in said if given is not None and given != there[name]] == []
    whole = tuple(name for name, _ in said if name.endswith("."))
    assert {name for name in there if not name.startswith(whole)} - {name for name, _ in said} == set()


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_sentence_begins_as_one(folder: Path):
    sentences = words_beside(str(folder / "page.py")).sentences
    assert [words for words in sentences.values() if words.endswith(".") and words[0].islower()] == []


def test_a_sentence_takes_its_values_and_refuses_to_go_without():
    say = Say({"page.found": "{count} of {all}"})
    assert say("page.found", count=3, all="<b>4</b>") == "3 of <b>4</b>"
    assert say.unfilled("page.found") == "{count} of {all}"
    with pytest.raises(KeyError, match="all"):
        say("page.found", count=3)
    with pytest.raises(KeyError, match=r"page\.lost"):
        say("page.lost")


def places(words: str) -> frozenset[str]:
    """The places of a sentence."""
    return frozenset(name for _, name, _, _ in Formatter().parse(words) if name)
