"""The weight files of a folder, and what their headers say: whole or not, and how many values of which kind.

A header names every tensor's shape and place, so a file that was cut short, and a model that would take the
machine down, are known in milliseconds. Of several sets of weights in a folder ("consolidated.safetensors" is the
same model in another layout) only the one that transformers reads is counted.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine.errors import CorruptModel, UnsupportedModel
from engine.models.fit import read_json

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
LONGEST_HEADER = 100_000_000  # bytes; the format's own limit
INTEGERS = {"I64": 8, "U64": 8, "I32": 4, "U32": 4, "I16": 2, "U16": 2, "I8": 1, "U8": 1, "BOOL": 1}


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """One tensor by its header. `offset` is its first byte in the file."""

    dtype: str
    shape: tuple[int, ...]
    offset: int = 0

    @property
    def values(self) -> int:
        return math.prod(self.shape)


def read_headers(folder: Path) -> dict[str, StoredTensor]:
    """Every tensor that transformers would load. Raises where a file is missing or not whole."""
    return {name: tensor for path in weight_files(folder) for name, tensor in read_header(path).items()}


def weight_files(folder: Path) -> list[Path]:
    """The one set of weights that transformers reads: a single file, or those that the index names."""
    if (folder / SINGLE).is_file():
        return [folder / SINGLE]
    if not (folder / INDEX).is_file():
        others = sorted(path.name for path in folder.glob("*.safetensors"))
        found = f"only {', '.join(others[:3])}" if others else "none"
        raise UnsupportedModel(
            f"{folder} has no safetensors weights under the name {SINGLE} or with an index beside them ({found}), and "
            "Loupe loads no others."
        )
    names = _named_by(folder / INDEX)
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise CorruptModel(f"{folder} lacks {', '.join(missing[:3])}, which its index names. Fetch the model again.")
    return [folder / name for name in names]


def chosen_of(names: Iterable[str]) -> list[str]:
    """Of a repository's files, the safetensors of that one set."""
    own = [name for name in names if name.endswith(".safetensors") and "/" not in name]
    return [SINGLE] if SINGLE in own else sorted(name for name in own if name.startswith("model-"))


def held_bytes(weights: dict[str, StoredTensor], float_bytes: int) -> int:
    """Bytes of all weights once loaded: each floating-point value in `float_bytes`, integers as stored."""
    return sum(tensor.values * INTEGERS.get(tensor.dtype, float_bytes) for tensor in weights.values())


def _named_by(index: Path) -> list[str]:
    weight_map = read_json(index).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise CorruptModel(f"{index} has no weight_map that names files. Fetch the model again.")
    for name in weight_map.values():
        if not isinstance(name, str) or Path(name).name != name or not name.endswith(".safetensors"):
            raise CorruptModel(f"{index} names {str(name)[:60]!r}, which is no safetensors file beside it.")
    return sorted(set(weight_map.values()))


def read_header(path: Path) -> dict[str, StoredTensor]:
    """The tensors of one file. Raises CorruptModel where it is not whole."""
    size = path.stat().st_size
    try:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            if length > min(size, LONGEST_HEADER):
                raise ValueError("its header is longer than the file, or than a header may be")
            entries = json.loads(file.read(length))
        entries.pop("__metadata__", None)
        found = {name: _tensor(entry) for name, entry in entries.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, struct.error) as error:
        raise CorruptModel(f"{path} is not a whole safetensors file: {error}. Fetch the model again.") from error
    end = max((end for _, end in found.values()), default=0)
    if 8 + length + end > size:
        raise CorruptModel(f"{path} is cut short: {size:,} of {8 + length + end:,} bytes. Fetch the model again.")
    return {name: replace(tensor, offset=8 + length + tensor.offset) for name, (tensor, _) in found.items()}


def _tensor(entry: dict[str, Any]) -> tuple[StoredTensor, int]:
    """A tensor, and the byte at which it ends. Raises ValueError where a number cannot be one."""
    shape, offsets = entry["shape"], entry["data_offsets"]
    numbers = [*shape, *offsets]
    if any(type(number) is not int or not 0 <= number < 1 << 63 for number in numbers) or len(offsets) != 2:
        raise ValueError(f"a tensor has the numbers {str(numbers)[:60]}")
    tensor = StoredTensor(str(entry["dtype"]), tuple(shape), offsets[0])
    if not isinstance(entry["dtype"], str) or offsets[0] > offsets[1] or tensor.values > 8 * (offsets[1] - offsets[0]):
        raise ValueError(f"a tensor of shape {str(shape)[:40]} lies in {offsets[1] - offsets[0]} bytes")
    return tensor, offsets[1]
