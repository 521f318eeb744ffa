"""Text that remembers who wrote it, all the way through a chat template.

Every character that a person typed is held as a stand-in from the private-use planes, one for each different
character. Joining, slicing and printing carry stand-ins along by themselves. Whatever a template may ask about the
text (does it start with "/no", how does it split at "\\n") is answered from the characters they stand for, so a
template treats marked text as it treats the plain one.

What a method here makes out of typed text is marked in turn: a mark may be put on too much, never on too little.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from functools import partial
from typing import Any, SupportsIndex

from engine.errors import PromptError

_FIRST, _LAST = 0xF0000, 0x10FFFD  # private-use planes 15 and 16


class Alphabet:
    """One stand-in for every different character that was typed."""

    def __init__(self) -> None:
        self._marks: dict[int, str] = {}
        self._plain: dict[int, str] = {}
        self._stand_ins: set[str] = set()

    def mark(self, text: str, only: Set[str] | None = None) -> str:
        """The text in stand-ins; with `only`, these characters of it."""
        wanted = set(text) if only is None else set(text) & only
        for char in sorted(wanted):
            if ord(char) not in self._marks:
                self._add(char)
        table = self._marks if only is None else {ord(char): self._marks[ord(char)] for char in wanted}
        return text.translate(table)

    def plain(self, text: str) -> str:
        """The text that stand-ins stand for; other characters stay as they are."""
        return text.translate(self._plain)

    def has_mark(self, text: str) -> bool:
        """Whether any of it was typed."""
        return not self._stand_ins.isdisjoint(text)

    def only_marked(self, text: str) -> str:
        """What of it was typed."""
        return "".join(filter(self._stand_ins.__contains__, text))

    def _add(self, char: str) -> None:
        code = _FIRST + len(self._marks)
        if code > _LAST:
            most = _LAST - _FIRST + 1
            raise PromptError(f"The message has more than {most:,} different characters. Shorten it.")
        self._marks[ord(char)] = chr(code)
        self._plain[code] = char
        self._stand_ins.add(chr(code))


class TypedText(str):
    """A string with stand-ins in it, asked about what they stand for. `typed_text` makes one class per alphabet.

    Names begin with an underscore because a sandboxed template cannot reach those.
    """

    __slots__ = ()
    _alphabet: Alphabet

    def _text(self) -> str:
        return self._alphabet.plain(str.__str__(self))

    def _same(self, text: str) -> TypedText:
        return type(self)(text)

    def __str__(self) -> str:
        return self  # so that str(text), which filters begin with, keeps what it knows

    def __hash__(self) -> int:
        return hash(self._text())

    def __getitem__(self, index: SupportsIndex | slice) -> TypedText:
        return self._same(super().__getitem__(index))

    def __iter__(self) -> Iterator[str]:
        return map(self._same, super().__iter__())

    def __add__(self, other: str) -> TypedText:
        return self._same("".join((self, other)))

    def __radd__(self, other: str) -> TypedText:
        return self._same("".join((other, self)))

    def lstrip(self, chars: str | None = None) -> TypedText:
        text = self._text()
        return self[len(text) - len(text.lstrip(_plainly(self._alphabet, chars))) :]

    def rstrip(self, chars: str | None = None) -> TypedText:
        return self[: len(self._text().rstrip(_plainly(self._alphabet, chars)))]

    def strip(self, chars: str | None = None) -> TypedText:
        return self.lstrip(chars).rstrip(chars)

    def removeprefix(self, prefix: str) -> TypedText:
        return self[len(prefix) :] if self.startswith(prefix) else self

    def removesuffix(self, suffix: str) -> TypedText:
        return self[: len(self) - len(suffix)] if suffix and self.endswith(suffix) else self

    def replace(self, old: str, new: str, count: SupportsIndex = -1) -> TypedText:
        if not old:
            return self._same(super().replace(old, new, count))
        return self._same("".join(_between(self.split(old, count), new)))

    def partition(self, sep: str) -> tuple[str, str, str]:
        at = self.find(sep)
        return (self[:at], self[at : at + len(sep)], self[at + len(sep) :]) if at >= 0 else (self, "", "")

    def rpartition(self, sep: str) -> tuple[str, str, str]:
        at = self.rfind(sep)
        return (self[:at], self[at : at + len(sep)], self[at + len(sep) :]) if at >= 0 else ("", "", self)

    def split(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:
        return self._cut(self._text().split(_plainly(self._alphabet, sep), maxsplit), sep)

    def rsplit(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:
        return self._cut(self._text().rsplit(_plainly(self._alphabet, sep), maxsplit), sep)

    def splitlines(self, keepends: bool = False) -> list[str]:
        found: list[str] = []
        at = 0
        for kept, whole in zip(self._text().splitlines(keepends), self._text().splitlines(True), strict=True):
            found.append(self[at : at + len(kept)])
            at += len(whole)
        return found

    def _cut(self, parts: list[str], sep: str | None) -> list[str]:
        """The places of parts that follow each other, `sep` or white space between them."""
        text, at, found = self._text(), 0, []
        for part in parts:
            at = text.index(part, at) if sep is None else at
            found.append(self[at : at + len(part)])
            at += len(part) + len(sep or "")
        return list(found)

    def _changed(self, name: str) -> TypedText:
        """The text in another case. Where that changes its length, all of it counts as typed."""
        changed: str = getattr(self._text(), name)()
        if len(changed) != len(self):
            return self._same(self._alphabet.mark(changed))
        is_typed = map(self._alphabet.has_mark, str.__iter__(self))
        pairs = zip(changed, is_typed, strict=True)
        return self._same("".join(self._alphabet.mark(char) if typed else char for char, typed in pairs))


def typed_text(alphabet: Alphabet) -> type[TypedText]:
    """The class of strings whose stand-ins are of this alphabet."""
    return type("TypedText", (TypedText,), {"__slots__": (), "_alphabet": alphabet})


def _plainly(alphabet: Alphabet, value: Any) -> Any:
    """An argument without stand-ins; a tuple is what startswith takes."""
    if isinstance(value, tuple):
        return tuple(_plainly(alphabet, inner) for inner in value)
    return alphabet.plain(str.__str__(value)) if isinstance(value, str) else value


def _between(parts: list[str], new: str) -> Iterator[str]:
    for number, part in enumerate(parts):
        if number:
            yield new
        yield part


def _asked(name: str) -> Callable[..., Any]:
    def ask(self: TypedText, *args: Any) -> Any:
        plain = partial(_plainly, self._alphabet)
        return getattr(self._text(), name)(*map(plain, args))

    return ask


_QUESTIONS = (
    *(
        "startswith",
        "endswith",
        "find",
        "rfind",
        "index",
        "rindex",
        "count",
        "isalnum",
        "isalpha",
        "isascii",
        "islower",
    ),
    *("isdecimal", "isdigit", "isidentifier", "isnumeric", "isprintable", "isspace", "istitle", "isupper"),
    *("__contains__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"),
)
_CASES = ("lower", "upper", "title", "capitalize", "swapcase", "casefold")

for _name in _QUESTIONS:
    setattr(TypedText, _name, _asked(_name))
for _name in _CASES:
    setattr(TypedText, _name, lambda self, name=_name: self._changed(name))
