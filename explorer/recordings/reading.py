"""A recording read back: everything in it is checked before anything is shown or computed.

The page has its own reader of the same format (assets/step_page/store/recording_file.js), which opens files without a
server. Both hold a header against one schema, and then what no schema can say: that arrays lie inside the file and have
the shapes that model and run give them.
"""

from __future__ import annotations

import json
import math
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from jsonschema import Draft202012Validator
from numpy.typing import NDArray

from engine.records import TAIL_BINS
from explorer.live.frame import ALIGNMENT, read_plane, unpack
from explorer.live.record_payload import THUMB_BINS
from explorer.recordings import refusals
from explorer.recordings.refusals import BadRecording
from explorer.recordings.writing import MAGIC, VERSION

SCHEMA = Path(__file__).resolve().parents[2] / "assets" / "recordings" / "recording.schema.json"
MOST_BYTES = 512_000_000  # unpacked
BYTES_OF = {"f4": 4, "f2": 2, "i4": 4, "u1": 1}


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """A recording that fits together.

    header  as docs/recordings.md describes it
    frame   the same with the arrays, as the page takes it
    """

    header: Mapping[str, Any]
    frame: bytes
    _planes: bytes

    def has(self, step: int, name: str) -> bool:
        """Whether a step has an array of this name."""
        return name in self.header["steps"][step]["planes"]

    def array(self, step: int, name: str) -> NDArray[np.generic]:
        """An array of a step, by the name that docs/recordings.md gives it."""
        return read_plane(self._planes, self.header["steps"][step]["planes"][name])


def read_recording(data: bytes) -> Recording:
    """Raises BadRecording, in words, on anything that Loupe would not have written."""
    frame = _unpacked(_body(data))
    try:
        header, planes = unpack(frame)
    except (struct.error, ValueError, RecursionError):
        raise refusals.cut() from None
    for where, what in _faults(header, len(planes)):
        raise refusals.wrong(where, what)
    return Recording(header, frame, planes)


def _body(data: bytes) -> bytes:
    """What follows the first line, if the line names a format that is read here."""
    line, newline, _ = data[: len(MAGIC) + 8].partition(b"\n")
    number = line.removeprefix(MAGIC)
    if not line.startswith(MAGIC) or not newline or not number.isdigit():
        raise refusals.not_one()
    if int(number) > VERSION:
        raise refusals.newer(int(number))
    return data[len(line) + 1 :]


def _unpacked(body: bytes) -> bytes:
    unpacking = zlib.decompressobj(wbits=31)  # gzip
    try:
        frame = unpacking.decompress(body, MOST_BYTES + 1)
    except zlib.error:
        raise refusals.cut() from None
    if len(frame) > MOST_BYTES:
        raise refusals.too_large(MOST_BYTES)
    if not unpacking.eof:
        raise refusals.cut()
    return frame


@cache
def validator() -> Draft202012Validator:
    """Holds headers against the schema."""
    return Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))


def _faults(header: Mapping[str, Any], num_bytes: int) -> Iterator[tuple[str, str]]:
    """What is wrong first, as (where, what)."""
    for error in validator().iter_errors(header):
        yield ".".join(str(part) for part in error.absolute_path) or "its header", _short(error.message)
        return  # what follows trusts the kinds of all values
    recipe, steps = header["session"]["recipe"], header["steps"]
    prompt = len(recipe["prompt_ids"])
    if len(steps) != len(recipe["chosen_ids"]):
        yield "steps", f"are {len(steps)}, and {len(recipe['chosen_ids'])} tokens were chosen"
        return
    ids = [token["id"] for token in header["tokens"]]
    if ids != [*recipe["prompt_ids"], *recipe["chosen_ids"]]:
        yield "tokens", "are not those of the recipe"
    for index, step in enumerate(steps):
        yield from _faults_of_step(header, step, index, prompt, num_bytes)


def _faults_of_step(
    header: Mapping[str, Any], step: Any, index: int, prompt: int, num_bytes: int
) -> Iterator[tuple[str, str]]:
    recipe, where = header["session"]["recipe"], f"step {index}"
    fed = recipe["prompt_ids"] if index == 0 else [recipe["chosen_ids"][index - 1]]
    if step["index"] != index or step["kv_len"] != prompt + index:
        yield where, f"names itself {step['index']} and has {step['kv_len']} tokens in the cache"
    if step["input_ids"] != fed or step["draw"]["token_id"] != recipe["chosen_ids"][index]:
        yield where, "fed or drew other tokens than the recipe has"
    shapes = _shapes(header["model"], step)
    for name, plane in step["planes"].items():
        if name not in shapes:
            yield where, f"has an array {name}, which is not known"
            return
        if plane["shape"] != shapes[name]:
            yield where, f"has an array {name} of shape {plane['shape']}; it must be {shapes[name]}"
        end = plane["offset"] + BYTES_OF[plane["dtype"]] * math.prod(plane["shape"])
        if plane["offset"] % ALIGNMENT or end > num_bytes:
            yield where, f"has an array {name} that does not lie in the file"


def _shapes(model: Mapping[str, Any], step: Mapping[str, Any]) -> dict[str, list[int]]:
    """Of every array of a step, from the model and the step's own counts."""
    layers, heads, kept = model["num_layers"], model["num_heads"], step["planes"]["cand_ids"]["shape"][0]
    return {
        "kv_norms": [2, layers, model["num_kv_heads"], len(step["input_ids"])],
        "cand_ids": [min(kept, model["vocab_size"])],
        "cand_logits": [kept],
        "cand_seen": [kept],
        "tail_counts": [TAIL_BINS],
        "stage_probs": [len(step["stages"]), min(kept, step["planes"]["stage_probs"]["shape"][1])],
        "attention": [layers, heads, step["kv_len"]],
        "attention_thumb": [layers, heads, THUMB_BINS],
    }


def _short(message: str) -> str:
    return message if len(message) <= 160 else f"{message[:157]}..."


__all__ = ["BadRecording", "Recording", "read_recording"]
