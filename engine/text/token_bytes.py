"""From a vocabulary's spelling to the bytes each token stands for.

A vocabulary never holds plain text. Byte-level BPE spells each byte as one printable letter (a space
is "Ġ", the two bytes of "á" are "Ã¡"); SentencePiece writes a space as "▁" and a byte without a token
of its own as "<0xF0>". Which spelling is in use is read from the tokenizer's own decoder.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tokenizers import Tokenizer as Backend

BYTE_TOKEN = re.compile(r"<0x([0-9A-F]{2})>")


def vocabulary_bytes(backend: Backend) -> tuple[bytes, ...]:
    """The bytes of every token by id; empty where an id has no token."""
    spell = _speller(json.loads(backend.to_str()))
    added = backend.get_added_tokens_decoder()
    vocabulary = backend.get_vocab(with_added_tokens=True)
    table = [b""] * (max(vocabulary.values(), default=-1) + 1)
    for spelling, token_id in vocabulary.items():
        # An added token is matched in the text as it stands, so its spelling is its text.
        table[token_id] = spelling.encode() if token_id in added else spell(spelling)
    return tuple(table)


@dataclass(frozen=True, slots=True)
class Character:
    """One character of a byte string, or what there is of it.

    start, end  its bytes
    char        None where bytes are missing or are not UTF-8
    size        bytes in the whole character as its first byte declares; 0 for a byte that can start none
    """

    start: int
    end: int
    char: str | None
    size: int


def characters(data: bytes) -> Iterator[Character]:
    """Cut bytes into characters; a piece that cannot be completed is a Character without `char`."""
    start = 0
    while start < len(data):
        size = _declared_size(data[start])
        end = start + max(1, _valid_length(data[start : start + size]))
        whole = size > 0 and end - start == size
        yield Character(start, end, data[start:end].decode() if whole else None, size)
        start = end


def decode(data: bytes) -> tuple[str, bytes]:
    """Text, and the bytes of a last character that may still be completed."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    text = decoder.decode(data)
    return text, decoder.getstate()[0]


def whole_text(data: bytes) -> str | None:
    """The bytes as text, or None where they are not whole characters."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _declared_size(first: int) -> int:
    if first < 0x80:
        return 1
    if 0xC2 <= first <= 0xDF:
        return 2
    if 0xE0 <= first <= 0xEF:
        return 3
    return 4 if 0xF0 <= first <= 0xF4 else 0


def _valid_length(data: bytes) -> int:
    """How many of these bytes, from the first on, belong to one character that could still be whole."""
    for length in range(len(data), 0, -1):
        try:
            codecs.getincrementaldecoder("utf-8")().decode(data[:length])
        except UnicodeDecodeError:
            continue
        return length
    return 0


def _speller(tokenizer: dict[str, Any]) -> Callable[[str], bytes]:
    """The function that turns one spelling of this vocabulary into bytes."""
    steps = list(_flat(tokenizer.get("decoder"), "decoders"))
    kinds = {step["type"] for step in steps}
    if not kinds:
        kinds = {step["type"] for step in _flat(tokenizer.get("pre_tokenizer"), "pretokenizers")} & {"ByteLevel"}
    if "ByteLevel" in kinds:
        return _from_byte_letters
    byte_fallback = "ByteFallback" in kinds or bool(tokenizer["model"].get("byte_fallback"))

    def spell(spelling: str) -> bytes:
        byte = BYTE_TOKEN.fullmatch(spelling) if byte_fallback else None
        if byte:
            return bytes.fromhex(byte[1])
        for step in steps:
            spelling = _undo(step, spelling)
        return spelling.encode()

    return spell


def _flat(part: dict[str, Any] | None, children: str) -> Iterator[dict[str, Any]]:
    """A decoder or pre-tokenizer as a flat run of steps."""
    if part is None:
        return
    if part["type"] == "Sequence":
        for child in part[children]:
            yield from _flat(child, children)
    else:
        yield part


def _undo(step: dict[str, Any], spelling: str) -> str:
    """One decoder step on one token. Steps that look at neighbours (Fuse, Strip) leave a token alone."""
    match step["type"]:
        case "Replace" if "String" in step["pattern"]:
            return spelling.replace(step["pattern"]["String"], step["content"])
        case "Metaspace":
            return spelling.replace(step["replacement"], " ")
        case "WordPiece":
            prefix = step["prefix"]
            return spelling[len(prefix) :] if spelling.startswith(prefix) else " " + spelling
        case "BPEDecoder":
            return spelling.replace(step["suffix"], " ")
    return spelling


def _byte_letters() -> dict[str, int]:
    """GPT-2's alphabet: a printable Latin-1 byte is its own letter, the others follow from U+0100 in order."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + i): byte for i, byte in enumerate(others)}


_LETTERS = _byte_letters()


def _from_byte_letters(spelling: str) -> bytes:
    try:
        return bytes(_LETTERS[letter] for letter in spelling)
    except KeyError:  # a token that is not written in the alphabet stands for its own text
        return spelling.encode()
