"""Tokens as values: bytes with an id, the text they join to, and a prompt that knows what a person typed.

A token is bytes. Text is a view of bytes, and a character may be split over several tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Role = Literal["template", "prompt", "generated", "forced"]


@dataclass(frozen=True, slots=True)
class CharPart:
    """Which bytes of one character a token holds, where a character is split over tokens.

    char   the whole character; None while its last bytes have not come
    first  1-based number of the token's first byte within the character; last likewise, inclusive
    of     bytes in the whole character, as its first byte declares
    """

    char: str | None
    first: int
    last: int
    of: int


@dataclass(frozen=True, slots=True)
class TokenPiece:
    """One token as bytes. Text is a view: it is joined from bytes, never from pieces of text.

    text   the bytes as text where they are whole characters on their own, else None
    parts  for each character that is split between this token and a neighbour
    known  False for an id that the tokenizer has no token for: models pad their vocabulary
    """

    token_id: int
    raw: bytes
    text: str | None
    special: bool
    parts: tuple[CharPart, ...] = ()
    known: bool = True


@dataclass(frozen=True, slots=True)
class JoinedText:
    """Text of a token sequence, and the bytes of a last character that is not complete yet."""

    text: str
    pending: bytes


@dataclass(frozen=True, slots=True)
class EncodedPrompt:
    """Token ids and, for each, whether a person typed it or the chat template inserted it."""

    ids: tuple[int, ...]
    roles: tuple[Role, ...]
    notes: tuple[str, ...] = ()  # e.g. "The prompt ends in a space, which is a token of its own."
