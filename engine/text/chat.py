"""A chat as the model reads it: the template's own text, and the user's text inside it.

The two must not mix. Whoever types "<|im_end|>" into a message means those characters; only the template
may place control tokens. So the template is rendered a second time with marks round every message, which
shows where typed text lands even if the template trims it, and control tokens are looked for outside of it.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from jinja2 import TemplateError
from tokenizers import AddedToken
from tokenizers import Tokenizer as Backend
from transformers import PreTrainedTokenizerFast

from engine.errors import PromptError
from engine.tokens import EncodedPrompt, Role

ChatRole = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One turn of a conversation."""

    role: ChatRole
    text: str


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start` to `end` of a rendered chat, which a person typed."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Tokens:
    """Ids, and the characters of the rendered chat that each stands for."""

    ids: list[int]
    offsets: list[tuple[int, int]]


class ChatEncoder:
    """Turns messages into ids and roles. Not thread-safe: the Tokenizer holds its lock round it."""

    def __init__(self, stock: PreTrainedTokenizerFast) -> None:
        self._stock = stock
        self._controls = _Controls(stock.backend_tokenizer)

    def encode(self, messages: Sequence[ChatMessage]) -> EncodedPrompt:
        """Where no message spells a control token, the stock ids of the stock rendering."""
        rendered = self._render(messages)
        typed = self._typed_spans(messages, rendered)
        if typed is None:
            note = "The chat template rewrites the messages, so typed text cannot be told from the template's own."
            tokens = self._stock_tokens(rendered)
            roles = tuple[Role, ...]("prompt" for _ in tokens.ids)
            return EncodedPrompt(tuple(tokens.ids), roles, (note,))
        if all(_in_template(start, end, typed) for start, end, _ in self._controls.find(rendered)):
            tokens = self._stock_tokens(rendered)
        else:
            tokens = self._guarded_tokens(rendered, typed)
        return EncodedPrompt(tuple(tokens.ids), _roles(tokens, typed))

    def _render(self, messages: Sequence[ChatMessage]) -> str:
        turns = [{"role": message.role, "content": message.text} for message in messages]
        try:
            rendered = self._stock.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        except TemplateError as error:
            raise PromptError(f"The model's chat template refuses these messages: {error}") from error
        assert isinstance(rendered, str), f"a template renders text, not {type(rendered)}"
        return rendered

    def _typed_spans(self, messages: Sequence[ChatMessage], rendered: str) -> list[Span] | None:
        """Where typed text stands in `rendered`; None where the template changes more than outer spaces."""
        marks = [(secrets.token_hex(12), secrets.token_hex(12)) for _ in messages]
        marked = self._render(
            [replace(m, text=f"{before}{m.text}{after}") for m, (before, after) in zip(messages, marks, strict=True)]
        )
        template, texts, at = [], [], 0
        for match in re.finditer("|".join(f"{before}(?s:(.*?)){after}" for before, after in marks), marked):
            template.append(marked[at : match.start()])
            texts.append(next(group for group in match.groups() if group is not None))
            at = match.end()
        template.append(marked[at:])
        for trim in (str, str.strip, str.lstrip, str.rstrip):
            spans = _aligned(template, [trim(text) for text in texts], rendered)
            if spans is not None:
                return spans
        return None

    def _stock_tokens(self, text: str) -> Tokens:
        # Without special tokens: the template has written the start token already, and there must be only one.
        found = self._stock(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        return Tokens(found["input_ids"], found["offset_mapping"])

    def _guarded_tokens(self, rendered: str, typed: list[Span]) -> Tokens:
        """Control tokens only where the template wrote them; all text between is split as plain text."""
        tokens = Tokens([], [])
        at = 0
        for low, high in _template_stretches(typed, len(rendered)):
            for start, end, spelling in self._controls.find(rendered[low:high]):
                start, end = low + start, low + end
                token_id, control = self._controls.by_spelling[spelling]
                text_end = len(rendered[:start].rstrip()) if control.lstrip else start
                self._add_plain(tokens, rendered, at, text_end)
                tokens.ids.append(token_id)
                tokens.offsets.append((start, end))
                at = len(rendered) - len(rendered[end:].lstrip()) if control.rstrip else end
        self._add_plain(tokens, rendered, at, len(rendered))
        return tokens

    def _add_plain(self, tokens: Tokens, rendered: str, start: int, end: int) -> None:
        if end <= start:
            return
        backend = self._plain_at_start if start == 0 else self._plain_after
        encoding = backend.encode(rendered[start:end], add_special_tokens=False)
        tokens.ids.extend(encoding.ids)
        tokens.offsets.extend((start + low, start + high) for low, high in encoding.offsets)

    @cached_property
    def _plain_at_start(self) -> Backend:
        """A copy of the tokenizer to which control tokens are plain text."""
        copy = Backend.from_str(self._stock.backend_tokenizer.to_str())
        copy.no_truncation()
        copy.no_padding()
        copy.encode_special_tokens = True
        return copy

    @cached_property
    def _plain_after(self) -> Backend:
        """The same for text that does not begin the prompt: some vocabularies add a space at the start alone."""
        whole = json.loads(self._plain_at_start.to_str())
        parts = json.dumps(whole["pre_tokenizer"])
        if '"prepend_scheme": "first"' not in parts:
            return self._plain_at_start
        whole["pre_tokenizer"] = json.loads(parts.replace('"prepend_scheme": "first"', '"prepend_scheme": "never"'))
        copy = Backend.from_str(json.dumps(whole))
        copy.encode_special_tokens = True
        return copy


class _Controls:
    """The vocabulary's special tokens, and where a text spells them."""

    def __init__(self, backend: Backend) -> None:
        added: dict[int, AddedToken] = backend.get_added_tokens_decoder()
        self.by_spelling = {token.content: (token_id, token) for token_id, token in added.items() if token.special}
        longest_first = sorted(self.by_spelling, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")  # (?!) matches nothing

    def find(self, text: str) -> Iterator[tuple[int, int, str]]:
        for match in self._pattern.finditer(text):
            yield match.start(), match.end(), match[0]


def _aligned(template: list[str], texts: list[str], rendered: str) -> list[Span] | None:
    """The texts' places, if template and texts in turn make up the rendering."""
    spans, at = [], 0
    for before, text in zip(template, [*texts, ""], strict=True):
        if not rendered.startswith(before + text, at):
            return None
        at += len(before)
        spans.append(Span(at, at + len(text)))
        at += len(text)
    return spans[:-1] if at == len(rendered) else None


def _template_stretches(typed: list[Span], length: int) -> Iterator[tuple[int, int]]:
    at = 0
    for span in typed:
        yield at, span.start
        at = span.end
    yield at, length


def _in_template(start: int, end: int, typed: list[Span]) -> bool:
    return all(end <= span.start or start >= span.end for span in typed)


def _roles(tokens: Tokens, typed: list[Span]) -> tuple[Role, ...]:
    """A token is the template's only if it holds nothing a person typed."""
    return tuple("template" if _in_template(start, end, typed) else "prompt" for start, end in tokens.offsets)
