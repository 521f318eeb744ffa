"""Tokens as the browser gets them: bytes first, text where the bytes are whole characters.

A character can be split over as many as four tokens, so what a token is part of may change until three
more have come: the last few entries of a growing list are made anew, all earlier ones are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from engine.tokens import Role, TokenPiece
from explorer.live.frame import Json

SPLIT_REACH = 4  # UTF-8 characters have at most four bytes


class Spelling(Protocol):
    """What of a tokenizer the page needs."""

    def piece(self, token_id: int) -> TokenPiece:
        """One token on its own."""
        ...

    def pieces(self, token_ids: Sequence[int]) -> tuple[TokenPiece, ...]:
        """Tokens among their neighbours."""
        ...


def piece_json(piece: TokenPiece) -> dict[str, Json]:
    """One token without its neighbours. One without bytes is told from others of the kind by its id."""
    nameless: dict[str, Json] = {} if piece.raw else {"id": piece.token_id, "known": piece.known}
    return {"text": piece.text, "hex": piece.raw.hex(), "special": piece.special, **nameless}


def pieces_json(ids: Iterable[int], spelling: Spelling) -> dict[str, Json]:
    """Id (as text: JSON has no other keys) -> how it is spelled."""
    return {str(token_id): piece_json(spelling.piece(token_id)) for token_id in sorted(ids)}


class TokenList:
    """The tokens of one growing sequence as JSON, spelled once each."""

    def __init__(self, spelling: Spelling) -> None:
        self._spelling = spelling
        self._ids: tuple[int, ...] = ()
        self._entries: list[dict[str, Json]] = []

    def json(self, token_ids: tuple[int, ...], roles: Sequence[Role], start: int = 0) -> list[Json]:
        """Every token from number `start` on, with its role."""
        assert len(token_ids) == len(roles), f"{len(token_ids)} tokens have {len(roles)} roles"
        self._spell(token_ids)
        return [{**entry, "role": role} for entry, role in zip(self._entries[start:], roles[start:], strict=True)]

    def _spell(self, token_ids: tuple[int, ...]) -> None:
        if token_ids == self._ids:
            return
        settled = max(0, _common_prefix(self._ids, token_ids) - SPLIT_REACH)
        window = max(0, settled - SPLIT_REACH)  # characters that begin before `settled` may reach past it
        fresh = self._spelling.pieces(token_ids[window:])[settled - window :]
        self._entries[settled:] = [_token_json(piece) for piece in fresh]
        self._ids = token_ids


def _token_json(piece: TokenPiece) -> dict[str, Json]:
    parts: list[Json] = [{"char": p.char, "first": p.first, "last": p.last, "of": p.of} for p in piece.parts]
    return {"id": piece.token_id, **piece_json(piece), "parts": parts}


def _common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    if a == b[: len(a)]:
        return len(a)
    return next(i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y) if b != a[: len(b)] else len(b)
