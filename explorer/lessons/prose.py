"""A lesson's text: Markdown of few kinds, as spans. Nothing of it ever becomes markup that it did not write here.

**strong**, `code`, *a term of the glossary*, [words](https://…), and {values} of the live record. markdown-it reads it,
with HTML switched off: what looks like a tag is text.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Callable, Iterator, Sequence
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token

from explorer.glossary.glossary import terms
from explorer.lessons.fields import FIELDS
from explorer.lessons.lesson import Span, SpanKind, Text

VALUE = re.compile(r"\{([a-z]+\.[a-z0-9_]+)\}")
_PLAIN: dict[str, SpanKind] = {"strong_open": "strong"}

Complain = Callable[[str], None]


def markdown() -> MarkdownIt:
    """The reader of lessons: no HTML, no underlined headings, so that a line of dashes always parts two scenes."""
    return MarkdownIt("commonmark", {"html": False}).disable(["lheading", "code", "reference"])


def read_prose(written: str, complain: Complain) -> Text:
    """One paragraph as spans. `complain` is told what cannot stand in a lesson's text."""
    inline = markdown().parseInline(written)[0]
    return tuple(_spans(inline.children or [], complain))


def count_words(text: Text) -> int:
    """Words as a reader counts them; a value is one."""
    return sum(1 if span.kind == "value" else len(span.text.split()) for span in text)


def is_allowed_link(address: str) -> bool:
    """http and https, or a page of Loupe by its bare name, such as without-cache."""
    try:
        parts = urlsplit(address)
    except ValueError:  # what stands for a host is none
        return False
    if parts.scheme:
        return parts.scheme in ("http", "https") and bool(parts.netloc)
    return not parts.netloc and re.fullmatch(r"[a-z0-9-]+(\?[^#\s]*)?", address) is not None


def _spans(children: Sequence[Token], complain: Complain) -> Iterator[Span]:
    kind: SpanKind = "text"
    target = ""
    for token in children:
        if token.type == "text":
            yield from _written(token.content, kind, target, complain)
        elif token.type in ("softbreak", "hardbreak"):
            yield Span("text", " ")
        elif token.type == "code_inline":
            yield Span("code", token.content)
        elif token.type in ("strong_open", "em_open", "link_open"):
            kind = {"strong_open": "strong", "em_open": "term", "link_open": "link"}[token.type]  # type: ignore[assignment]
            target = str(token.attrs.get("href", ""))
            if kind == "link" and not is_allowed_link(target):
                complain(f"A link leads to {target!r}. Links begin with http:// or https://, or name a page of Loupe.")
        elif token.type.endswith("_close"):
            kind, target = "text", ""
        else:
            complain(
                f"There is {_NAMES.get(token.type, token.type)} in the text. Use words, **strong**, `code`, *term*."
            )


_NAMES = {"image": "a picture", "html_inline": "HTML"}


def _written(text: str, kind: SpanKind, target: str, complain: Complain) -> Iterator[Span]:
    end = 0
    for found in VALUE.finditer(text):
        yield from _part(text[end : found.start()], kind, target, complain)
        if found[1] not in FIELDS:
            complain(f"There is no value {found[0]}.{did_you_mean(found[1], FIELDS)}")
        yield Span("value", found[1])
        end = found.end()
    yield from _part(text[end:], kind, target, complain)


def _part(text: str, kind: SpanKind, target: str, complain: Complain) -> Iterator[Span]:
    if not text:
        return
    if kind == "term":
        target = _known_terms().get(text.lower(), "")
        if not target:
            complain(f"*{text}* is no term of the glossary.{did_you_mean(text.lower(), _known_terms())}")
    yield Span(kind, text, target)


@functools.cache
def _known_terms() -> dict[str, str]:
    """Every spelling, in small letters, and the term it means."""
    return {spelling.lower(): term.name for term in terms() for spelling in (term.name, *term.also)}


def did_you_mean(word: str, known: Sequence[str] | dict[str, str]) -> str:
    """ " Did you mean kv_len?", or nothing."""
    near = difflib.get_close_matches(word, list(known), 1)
    return f" Did you mean {near[0]}?" if near else ""
