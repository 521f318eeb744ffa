"""The sentences of the Python pages: each that a page says stands in its words.toml with these places, none unsaid."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pytest

from explorer.plurals import category
from explorer.say import Say, Words, forms, words_beside

EXPLORER = Path(__file__).resolve().parents[2] / "explorer"
FOLDERS = sorted(path.parent for path in EXPLORER.rglob("words.toml"))


DATA = ("claims", "lessons")  # claims and the faults of a lesson's file are data there
PROMPTS = {"The cat sat"}  # what a model reads is no sentence of ours
SENTENCE = re.compile(r"[A-Z“][^.#:\[]*[a-z]{2} [a-z{]\S* \S")  # begins like one, and has three words
SHOWS = ("st.", "shell.", "controls.")


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
    said = [form for words in sentences.values() for form in forms(words)]
    assert [words for words in said if words.endswith(".") and words[0].islower()] == []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_sentence_is_whole(folder: Path):
    """A piece of another one, or one whose places are filled in two goes, could not be put in another order."""
    sentences = words_beside(str(folder / "page.py")).sentences
    for name, words in ((name, form) for name, said in sentences.items() for form in forms(said)):
        assert words == words.strip(), f"{name} begins or ends with a blank: {words!r}"
        assert words[0] not in ",;:.", f"{name} goes on where another stops: {words!r}"
        assert not re.search(r"(?<!%)\{\{", words), f"{name} is filled twice: {words!r}"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_count_has_a_form_for_each_category_of_the_language_and_each_form_the_same_places(folder: Path):
    say = words_beside(str(folder / "page.py"))
    for name, words in say.sentences.items():
        if not isinstance(words, str):
            assert set(words) == {category(say.language, n) for n in range(200)}, name
            assert len({places(form) for form in words.values()}) == 1, name


@pytest.mark.parametrize("folder", [one for one in FOLDERS if one.name not in DATA], ids=lambda folder: folder.name)
def test_no_script_has_a_sentence_of_its_own(folder: Path):
    found = {words for path in folder.glob("*.py") for words in literals(ast.parse(path.read_text(encoding="utf-8")))}
    assert {words for words in found if SENTENCE.match(words)} - PROMPTS == set()


@pytest.mark.parametrize("folder", [one for one in FOLDERS if one.name not in DATA], ids=lambda folder: folder.name)
def test_nothing_of_several_words_is_shown_but_what_stands_among_the_sentences(folder: Path):
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).startswith(SHOWS):
                shown = [*node.args, *(word.value for word in node.keywords if word.arg in ("label", "help", "hint"))]
                said = [text_of(one) for one in shown if isinstance(one, (ast.Constant, ast.JoinedStr))]
                assert [words for words in said if re.search(r"[a-z]{2} [a-z]{2}", words)] == [], path.name


def test_a_sentence_takes_its_values_and_refuses_to_go_without():
    say = Say({"page.found": "{count} of {all}"})
    assert say("page.found", count=3, all="<b>4</b>") == "3 of <b>4</b>"
    assert say.unfilled("page.found") == "{count} of {all}"
    with pytest.raises(KeyError, match="all"):
        say("page.found", count=3)
    with pytest.raises(KeyError, match=r"page\.lost"):
        say("page.lost")


def test_a_count_takes_its_form_and_a_language_without_a_rule_is_refused():
    say = Say({"page.tokens": {"one": "{n} token", "other": "{n} tokens"}})
    assert [say("page.tokens", n=n) for n in (0, 1, 49_152)] == ["0 tokens", "1 token", "49,152 tokens"]
    polish = Say({"page.tokens": {"one": "{n} token", "few": "{n} tokeny", "many": "{n} tokenów"}}, "pl")
    assert [polish("page.tokens", n=n) for n in (1, 3, 5, 22)] == ["1 token", "3 tokeny", "5 tokenów", "22 tokeny"]
    with pytest.raises(TypeError, match="n must be a whole number, got '3 tokens'"):
        say("page.tokens", n="3 tokens")
    with pytest.raises(ValueError, match="no plural rule for 'xx' here, only for en, "):
        Say({"page.tokens": {"other": "{n}"}}, "xx")("page.tokens", n=1)


def places(words: Words) -> frozenset[str]:
    """The places of a sentence, in all its forms; a count is one, whether or not a form says it."""
    named = {name for form in forms(words) for _, name, _, _ in Formatter().parse(form) if name}
    return frozenset(named if isinstance(words, str) else named | {"n"})


def literals(tree: ast.Module) -> Iterator[str]:
    """Strings of a script, places as {}; not its docstrings, nor what is for a log or for us."""
    ours = [node for node in ast.walk(tree) if isinstance(node, (ast.Expr, ast.Assert)) and is_ours(node)]
    skipped = {id(node) for one in ours for node in ast.walk(one)}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Constant, ast.JoinedStr)) and id(node) not in skipped:
            yield text_of(node)


def is_ours(node: ast.Expr | ast.Assert) -> bool:
    """A docstring, an assertion, or a line for the log."""
    if isinstance(node, ast.Assert) or isinstance(node.value, ast.Constant):
        return True
    return isinstance(node.value, ast.Call) and ast.unparse(node.value.func).startswith("log.")


def text_of(node: ast.Constant | ast.JoinedStr) -> str:
    """A string as it is written."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
