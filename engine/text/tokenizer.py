"""Text to token ids and back, exactly.

A token is bytes, and text is joined from bytes: one emoji may be spread over four tokens, none of which
is text on its own. Nothing here ever decodes a token alone and glues the pieces.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate

from transformers import PreTrainedTokenizerFast

from engine.errors import EmptyPrompt, PromptError, PromptTooLong, UnknownToken
from engine.text.chat import ChatEncoder, ChatMessage
from engine.text.token_bytes import characters, decode, vocabulary_bytes, whole_text
from engine.tokens import CharPart, EncodedPrompt, JoinedText, Role, TokenPiece

MAX_CHARACTERS = 200_000  # a paste beyond this is refused before it is tokenised

__all__ = ["MAX_CHARACTERS", "ChatMessage", "Tokenizer", "visible"]


class Tokenizer:
    """A model's own tokenizer, seen as bytes. Safe to share between threads.

    A lock guards every call of the library: its padding and truncation set-up changes the shared object,
    and two threads in it at once fail with "Already borrowed".
    """

    def __init__(self, stock: PreTrainedTokenizerFast) -> None:
        self._stock = stock
        self._lock = threading.Lock()
        self._bytes = vocabulary_bytes(stock.backend_tokenizer)
        self._chat = ChatEncoder(stock)
        self._pieces: dict[int, TokenPiece] = {}
        added = stock.backend_tokenizer.get_added_tokens_decoder()
        self.special_ids = frozenset(i for i, token in added.items() if token.special) | {*stock.all_special_ids}
        self.vocab_size = len(self._bytes)
        self.has_chat_template = bool(stock.chat_template)

    @property
    def end_id(self) -> int | None:
        """The tokenizer's own end id. A model often has more: see ModelInfo.end_ids."""
        end: int | None = self._stock.eos_token_id
        return end

    def encode(self, text: str) -> EncodedPrompt:
        """The stock ids of raw text, with the start token the model is used to."""
        text, notes = _checked(text)
        with self._lock:
            found = self._stock(text, return_special_tokens_mask=True, verbose=False)
        ids = tuple(found["input_ids"])
        if not ids:
            raise EmptyPrompt("The prompt is empty, and this model has no start token. Type at least one character.")
        roles = tuple[Role, ...]("template" if added else "prompt" for added in found["special_tokens_mask"])
        return EncodedPrompt(ids, roles, (*notes, *self._notes(text, ids, roles)))

    def encode_chat(self, messages: Sequence[ChatMessage]) -> EncodedPrompt:
        """The model's own chat template round messages whose text stays text, even where it spells a control token."""
        if not self.has_chat_template:
            raise PromptError("This model has no chat template. Use the raw prompt instead.")
        if not messages or not messages[-1].text:
            raise EmptyPrompt("The message is empty. Type at least one character.")
        checked = [_checked(message.text) for message in messages]
        clean = [replace(message, text=text) for message, (text, _) in zip(messages, checked, strict=True)]
        _refuse_long(sum(len(message.text) for message in clean))
        with self._lock:
            encoded = self._chat.encode(clean)
        return replace(encoded, notes=(*(note for _, notes in checked for note in notes), *encoded.notes))

    def raw(self, token_id: int) -> bytes:
        """The bytes of one token; empty for an id without a token (models pad their vocabulary)."""
        return self._bytes[token_id] if 0 <= token_id < len(self._bytes) else b""

    def piece(self, token_id: int) -> TokenPiece:
        """One token without its neighbours."""
        found = self._pieces.get(token_id)
        if found is None:
            raw = self.raw(token_id)
            known = bool(raw) or (0 <= token_id < self.vocab_size and bool(self._spelled(token_id)))
            found = TokenPiece(token_id, raw, whole_text(raw), token_id in self.special_ids, known=known)
            self._pieces[token_id] = found
        return found

    def pieces(self, token_ids: Sequence[int]) -> tuple[TokenPiece, ...]:
        """Tokens in their sequence: where a character is split over several, each says which bytes it holds."""
        pieces = [self.piece(token_id) for token_id in token_ids]
        start = 0
        while start < len(pieces):
            end = start
            while end < len(pieces) and pieces[end].text is None:
                end += 1
            if end > start:  # a token that is whole text ends any character begun before it
                pieces[start:end] = _with_parts(pieces[start:end])
            start = end + 1
        return tuple(pieces)

    def join(self, token_ids: Sequence[int]) -> JoinedText:
        """Text of a sequence, special tokens as they are spelled; nothing is tidied up."""
        text, pending = decode(b"".join(self.raw(token_id) for token_id in token_ids))
        return JoinedText(text, pending)

    def joined(self, before: JoinedText, token_id: int) -> JoinedText:
        """`before` with one more token behind it: what `join` gives, without joining all of it again."""
        text, pending = decode(before.pending + self.raw(token_id))
        return JoinedText(before.text + text, pending)

    def find(self, text: str, vocab_size: int | None = None) -> int:
        """The first of `readings`."""
        return self.readings(text, vocab_size)[0]

    def readings(self, text: str, vocab_size: int | None = None) -> tuple[int, ...]:
        """The tokens that may be meant: what spells `text`, then the same with or without its leading space.

        A number with # before it is an id, and so is one that no token spells. `vocab_size` is the model's, which may
        have more ids than the tokenizer has tokens.
        """
        text, _ = _checked(text)
        if not text:
            raise EmptyPrompt("Name a token by its text, or by # and its id.")
        size = vocab_size or self.vocab_size
        spelled = [text, text.removeprefix(" ") if text.startswith(" ") else " " + text]
        found = [self._id_by_bytes[way.encode()] for way in spelled if way.encode() in self._id_by_bytes]
        number = re.fullmatch(r"\s*(#?)([0-9]+)\s*", text, re.ASCII)
        if number and (number[1] or not found):
            token_id = int(number[2][:19])
            if token_id < size:
                return (token_id, *(other for other in found if other != token_id))
            if number[1] and not found:
                raise UnknownToken(f"There is no token {number[2][:19]}: this model's ids go from 0 to {size - 1:,}.")
        if found:
            return tuple(found)
        with self._lock:
            ids = self._stock(text, add_special_tokens=False, verbose=False)["input_ids"]
        shown = "  ".join(f"{visible(self.piece(i))} ({i})" for i in ids[:8]) + (" …" if len(ids) > 8 else "")
        raise PromptError(f"No single token spells {text[:60]!r}; it takes {len(ids)}: {shown}. Name one of them.")

    def _spelled(self, token_id: int) -> str:
        return self._stock.backend_tokenizer.id_to_token(token_id) or ""

    @cached_property
    def _id_by_bytes(self) -> dict[bytes, int]:
        """Bytes to the lowest id that has them; an ordinary token goes before a byte-fallback one."""
        ordinary: dict[bytes, int] = {}
        fallback: dict[bytes, int] = {}
        for token_id, raw in enumerate(self._bytes):
            is_byte = len(raw) == 1 and self._spelled(token_id).startswith("<0x")
            (fallback if is_byte else ordinary).setdefault(raw, token_id)
        ordinary.pop(b"", None)
        return fallback | ordinary

    def _notes(self, text: str, ids: tuple[int, ...], roles: tuple[Role, ...]) -> list[str]:
        """What a person should know about how their text became tokens."""
        typed = [i for i, role in zip(ids, roles, strict=True) if role == "prompt"]
        notes = []
        if not typed:
            notes.append(f"The prompt is empty: decoding starts from {visible(self.piece(ids[0]))} alone.")
        if typed and roles[0] == "template" and typed[0] == ids[0]:
            notes.append(f"The text spells {visible(self.piece(ids[0]))}, and the tokenizer adds one more before it.")
        if typed and roles[-1] == "template":
            notes.append(f"The tokenizer ends every prompt with {visible(self.piece(ids[-1]))}.")
        if typed and self.raw(typed[-1]).isspace() and self.raw(typed[-1]).endswith(b" "):
            notes.append(
                "The prompt ends in a space, which is a token of its own here. Most next words begin with their "
                "space, so the model's continuation may suffer."
            )
        joined = b"".join(self.raw(i) for i in typed)
        if joined not in (text.encode(), b" " + text.encode()):  # SentencePiece puts one space before the first word
            notes.append("The tokenizer rewrote the text before splitting it: the tokens are what the model reads.")
        return notes


def visible(piece: TokenPiece) -> str:
    """A token for a plain-text table: space ·, newline ⏎, tab ⇥, bytes of a split character ⟨f0 9f⟩."""
    if not piece.raw:
        return f"⟨{'empty' if piece.known else 'no token'} {piece.token_id}⟩"
    out, lone = "", b""
    for part in characters(piece.raw):
        if part.char is None:
            lone += piece.raw[part.start : part.end]
            continue
        out += _hex(lone) + _sign(part.char)
        lone = b""
    out += _hex(lone)
    return "◌" + out if unicodedata.category(out[0])[0] == "M" else out  # a lone accent needs something to sit on


def _hex(raw: bytes) -> str:
    return f"⟨{raw.hex(' ')}⟩" if raw else ""


_SIGNS = {" ": "·", "\n": "⏎", "\t": "⇥", "\r": "␍"}


def _sign(char: str) -> str:
    """A character that leaves ink; those that do not get a sign or their code point."""
    return _SIGNS.get(char) or (char if char.isprintable() else f"⟨U+{ord(char):04X}⟩")


def _with_parts(pieces: list[TokenPiece]) -> list[TokenPiece]:
    """Fill in, for neighbours that share characters, which bytes of each character a token holds."""
    parts: list[list[CharPart]] = [[] for _ in pieces]
    starts = list(accumulate((len(piece.raw) for piece in pieces), initial=0))
    index = 0
    for c in characters(b"".join(piece.raw for piece in pieces)):
        while starts[index + 1] <= c.start:
            index += 1
        if c.size < 2 or (c.char and c.end <= starts[index + 1]):
            continue  # no character begins here, or it lies whole in one token
        last = index
        while last < len(pieces) and starts[last] < c.end:
            low, high = max(starts[last], c.start), min(starts[last + 1], c.end)
            if high > low:
                parts[last].append(CharPart(c.char, low - c.start + 1, high - c.start, c.size))
            last += 1
    return [replace(piece, parts=tuple(found)) for piece, found in zip(pieces, parts, strict=True)]


def _checked(text: str) -> tuple[str, tuple[str, ...]]:
    """Text a tokenizer can take, or a refusal; half a surrogate pair is no character and is replaced."""
    _refuse_long(len(text))
    clean = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if clean == text:
        return text, ()
    return clean, ("Half a character (a lone surrogate) was replaced by U+FFFD.",)


def _refuse_long(length: int) -> None:
    if length > MAX_CHARACTERS:
        raise PromptTooLong(
            f"The prompt is {length:,} characters; Loupe reads at most {MAX_CHARACTERS:,}. "
            f"Shorten it by {length - MAX_CHARACTERS:,}."
        )
