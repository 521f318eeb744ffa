"""Recordings as tests damage them: a header and its arrays, packed again."""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Callable
from typing import Any

from explorer.live.frame import unpack
from explorer.recordings.shipped import SHIPPED
from explorer.recordings.writing import MAGIC, file_of

GOOD = SHIPPED[0].file.read_bytes()


def body() -> bytes:
    """What is compressed in it."""
    return gzip.decompress(GOOD[GOOD.index(b"\n") + 1 :])


def changed(change: Callable[[dict[str, Any]], object]) -> bytes:
    """The same recording with another header."""
    header, planes = unpack(body())
    change(header)
    text = json.dumps(header).encode()
    head = struct.pack("<I", len(text)) + text
    return file_of(head + bytes(-len(head) % 8) + planes)


def set_at(*path: str | int, to: Any) -> Callable[[dict[str, Any]], object]:
    """Puts a value where the path leads."""

    def change(header: Any) -> None:
        for name in path[:-1]:
            header = header[name]
        header[path[-1]] = to

    return change


def bomb() -> bytes:
    """600 MB of zeros in 600 kB."""
    return MAGIC + b"1\n" + gzip.compress(bytes(600_000_000), 1)


# What is wrong with each, and a word of the message that says so.
DAMAGED: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "not a Loupe recording"),
    "another kind of file": (b"PK\x03\x04 and so on", "not a Loupe recording"),
    "a version that is no number": (b"loupe recording one\n", "not a Loupe recording"),
    "a newer version": (MAGIC + b"2\n" + GOOD[GOOD.index(b"\n") + 1 :], "format 2"),
    "nothing after the first line": (GOOD[: GOOD.index(b"\n") + 1], "damaged"),
    "cut in the middle": (GOOD[:5000], "damaged"),
    "the last byte lost": (GOOD[:-1], "damaged"),
    "one byte changed": (GOOD[:9000] + bytes([GOOD[9000] ^ 255]) + GOOD[9001:], "damaged"),
    "no frame inside": (file_of(b"\xff"), "damaged"),
    "no JSON inside": (file_of(b"\x04\0\0\0{{{{"), "damaged"),
    "a header that is a list": (file_of(b"\x02\0\0\0[]\0\0"), "its header"),
    "a field lost": (changed(lambda header: header["model"].pop("num_layers")), "num_layers"),
    "text for a number": (changed(set_at("steps", 3, "kv_len", to="6")), "steps.3.kv_len"),
    "markup for hex": (changed(set_at("tokens", 0, "hex", to="<b>")), "tokens.0.hex"),
    "no steps": (changed(set_at("steps", to=[])), "steps"),
    "a step too few": (changed(lambda header: header["steps"].pop()), "steps are 11"),
    "steps in another order": (changed(lambda header: header["steps"].reverse()), "step 0"),
    "another token fed": (changed(set_at("steps", 2, "input_ids", to=[5])), "step 2"),
    "another token drawn": (changed(set_at("steps", 2, "draw", "token_id", to=5)), "step 2"),
    "another token listed": (changed(set_at("tokens", 4, "id", to=5)), "tokens"),
    "an array too small": (changed(set_at("steps", 4, "planes", "attention", "shape", to=[30, 9, 6])), "attention"),
    "an array behind the end": (changed(set_at("steps", 4, "planes", "attention", "offset", to=8_000_000)), "file"),
    "an array that is not aligned": (changed(set_at("steps", 4, "planes", "cand_ids", "offset", to=4)), "file"),
    "an array of another kind": (changed(set_at("steps", 4, "planes", "cand_ids", "dtype", to="f8")), "dtype"),
    "an array nobody knows": (changed(set_at("steps", 4, "planes", "constructor", to=None)), "constructor"),
    "a model without heads": (changed(set_at("model", "num_heads", to=0)), "num_heads"),
    "ten million layers": (changed(set_at("model", "num_layers", to=10_000_000)), "num_layers"),
}
