"""The tokens that only a chat template may write, and where a text spells them.

As transformers counts them: the special tokens, and of the added ones those that the template itself writes, as Qwen's
does </think>. White space that was added to a vocabulary is text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tokenizers import AddedToken
from transformers import PreTrainedTokenizerFast


class ControlTokens:
    """Control tokens of one vocabulary and one template."""

    def __init__(self, stock: PreTrainedTokenizerFast, template: str) -> None:
        added: dict[int, AddedToken] = stock.backend_tokenizer.get_added_tokens_decoder()
        named = {*(getattr(stock, "chat_control_tokens", None) or ())}
        self.by_spelling: dict[str, tuple[int, AddedToken]] = {}
        self._others: dict[str, int] = {}
        for token_id, token in added.items():
            spelling = token.content
            if token.special or ((spelling in template or spelling in named) and not spelling.isspace()):
                self.by_spelling[spelling] = (token_id, token)
            elif not spelling.isspace():
                self._others[spelling] = token_id
        self.ids = frozenset(token_id for token_id, _ in self.by_spelling.values())
        self.first_characters = frozenset(spelling[0] for spelling in self.by_spelling if spelling)
        self._pattern, self._other_pattern = _any_of(self.by_spelling), _any_of(self._others)

    def find(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Start, end and spelling of each in turn."""
        for match in self._pattern.finditer(text):
            yield match.start(), match.end(), match[0]

    def notes(self, typed: str) -> Iterator[str]:
        """What a person should know who typed the spelling of a token."""
        for spelling in dict.fromkeys(self._pattern.findall(typed)):
            yield f"{spelling} was typed, so it is fed as characters: only the chat template writes control tokens."
        for spelling in dict.fromkeys(self._other_pattern.findall(typed)):
            yield f"{spelling} was typed, and it is one token of this vocabulary: id {self._others[spelling]}."


def _any_of(spellings: Iterable[str]) -> re.Pattern[str]:
    longest_first = sorted(filter(None, spellings), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")  # (?!) matches nothing
