"""A chat as the model reads it: the template's own text, and the user's text inside it.

The two must not mix. Whoever types "<|im_end|>" into a message means those characters; only the template may place
control tokens. So they are looked for where nobody typed, and all text between is split as plain text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tokenizers import Tokenizer as Backend
from transformers import PreTrainedTokenizerFast

from engine.errors import PromptError
from engine.text.chat_template import ChatTemplate
from engine.text.control_tokens import ControlTokens
from engine.text.rendered_chat import ChatMessage, RenderedChat, render_chat
from engine.tokens import EncodedPrompt, Role

__all__ = ["ChatEncoder", "ChatMessage"]


@dataclass(frozen=True, slots=True)
class Tokens:
    """Ids, and the characters of the rendered chat that each stands for."""

    ids: list[int]
    offsets: list[tuple[int, int]]


class ChatEncoder:
    """Turns messages into ids and roles. Not thread-safe: the Tokenizer holds its lock round it."""

    def __init__(self, stock: PreTrainedTokenizerFast) -> None:
        self._stock = stock

    def encode(self, messages: Sequence[ChatMessage]) -> EncodedPrompt:
        """Where no message spells a control token, the stock ids of the stock rendering."""
        chat = render_chat(self._template, messages, self._controls.first_characters)
        if list(self._controls.find(chat.text)) == list(self._controls.find(chat.marked)):
            tokens = self._stock_tokens(chat.text)
        else:
            tokens = self._guarded_tokens(chat)
        roles = tuple[Role, ...](
            "prompt" if not chat.told or chat.is_typed(start, end) else "template" for start, end in tokens.offsets
        )
        typed = "\0".join(message.text for message in messages)
        return EncodedPrompt(tuple(tokens.ids), roles, (*self._controls.notes(typed), *chat.notes))

    @cached_property
    def _template(self) -> ChatTemplate:
        source = self._stock.chat_template
        if isinstance(source, dict):
            if "default" not in source:
                names = ", ".join(sorted(map(str, source)))
                raise PromptError(
                    f"The model has several chat templates ({names}) and none is called default, so none is taken. "
                    "Use the raw prompt, or give one of them the name default in the model's files."
                )
            source = source["default"]
        return ChatTemplate(source, self._stock.special_tokens_map)

    @cached_property
    def _controls(self) -> ControlTokens:
        return ControlTokens(self._stock, self._template.source)

    def _stock_tokens(self, text: str) -> Tokens:
        # Without special tokens: the template has written the start token already, and there must be only one.
        found = self._stock(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        return Tokens(found["input_ids"], found["offset_mapping"])

    def _guarded_tokens(self, chat: RenderedChat) -> Tokens:
        """Control tokens only where the template wrote them; all text between is split as plain text."""
        tokens, text = Tokens([], []), chat.text
        at = 0
        for start, end, spelling in self._controls.find(chat.marked):
            token_id, control = self._controls.by_spelling[spelling]
            self._add_plain(tokens, text, at, len(text[:start].rstrip()) if control.lstrip else start)
            tokens.ids.append(token_id)
            tokens.offsets.append((start, end))
            at = len(text) - len(text[end:].lstrip()) if control.rstrip else end
        self._add_plain(tokens, text, at, len(text))
        return tokens

    def _add_plain(self, tokens: Tokens, rendered: str, start: int, end: int) -> None:
        if end <= start:
            return
        backend = self._plain_at_start if start == 0 else self._plain_after
        encoding = backend.encode(rendered[start:end], add_special_tokens=False)
        if not self._controls.ids.isdisjoint(encoding.ids):
            raise PromptError(
                "The message spells a control token, and this tokenizer reads those characters in no other way. "
                "Take them out."
            )
        tokens.ids.extend(encoding.ids)
        tokens.offsets.extend((start + low, start + high) for low, high in encoding.offsets)

    @cached_property
    def _plain_at_start(self) -> Backend:
        """A copy of the tokenizer without the control tokens: to it they are plain text."""
        whole = json.loads(self._stock.backend_tokenizer.to_str())
        whole |= {"truncation": None, "padding": None, "post_processor": None}
        whole["added_tokens"] = [t for t in whole["added_tokens"] if t["content"] not in self._controls.by_spelling]
        return Backend.from_str(json.dumps(whole))

    @cached_property
    def _plain_after(self) -> Backend:
        """The same for text that does not begin the prompt: some vocabularies add a space at the start alone."""
        whole = json.loads(self._plain_at_start.to_str())
        parts = json.dumps(whole["pre_tokenizer"])
        if '"prepend_scheme": "first"' not in parts:
            return self._plain_at_start
        whole["pre_tokenizer"] = json.loads(parts.replace('"prepend_scheme": "first"', '"prepend_scheme": "never"'))
        return Backend.from_str(json.dumps(whole))
