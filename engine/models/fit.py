"""Will the weights fit, and are their files whole? Both answered from safetensors headers, before loading.

A header names every tensor's shape and place, so a file that was cut short, and a model that would take the
machine down, are known in milliseconds.
"""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import Any

import psutil

from engine.errors import CorruptModel, ModelTooLarge

DTYPE_BYTES = {
    "F64": 8,
    "F32": 4,
    "BF16": 2,
    "F16": 2,
    "F8_E4M3": 1,
    "F8_E5M2": 1,
    "I64": 8,
    "I32": 4,
    "U8": 1,
    "I8": 1,
}
ROOM = 1.05  # beside the weights: activations, tokenizer, one tensor in two copies while it is moved
CGROUP = Path("/sys/fs/cgroup")


def weight_files(folder: Path) -> list[Path]:
    """The folder's safetensors files, those its index names if it has one. Raises CorruptModel if one is missing."""
    index = folder / "model.safetensors.index.json"
    if not index.exists():
        return sorted(folder.glob("*.safetensors"))
    names = sorted(set(read_json(index).get("weight_map", {}).values()))
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise CorruptModel(f"{folder} lacks {', '.join(missing[:3])}, which its index names. Fetch the model again.")
    return [folder / name for name in names]


def stored_bytes(files: list[Path], dtype_bytes: int | None) -> int:
    """Bytes of all weights, as stored or with each value in `dtype_bytes`. Raises CorruptModel for a cut file."""
    total = 0
    for path in files:
        for tensor in _header(path).values():
            width = dtype_bytes or DTYPE_BYTES.get(tensor["dtype"], 4)
            total += math.prod(tensor["shape"]) * width
    return total


def check_fits(name: str, needed: int, free: int, place: str) -> None:
    """Refuse before loading: a machine out of memory kills the program without a word."""
    if needed * ROOM > free:
        raise ModelTooLarge(
            f"{name} takes {_gb(needed)} for its weights; {_gb(free)} of {place} are free. "
            "Use a smaller model, close other programs, or ask for bfloat16, which takes half of float32."
        )


def free_memory() -> int:
    """Bytes this process may still take: what the machine has, or a container's limit where that is less."""
    available = int(psutil.virtual_memory().available)
    try:
        limit, used = (int((CGROUP / name).read_text()) for name in ("memory.max", "memory.current"))
    except (OSError, ValueError):  # no container, or one without a limit ("max")
        return available
    return min(available, max(0, limit - used))


def read_json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, UnicodeDecodeError) as error:
        raise CorruptModel(f"{path} is not valid JSON: {error}. Fetch the model again.") from error
    if not isinstance(data, dict):
        raise CorruptModel(f"{path} holds {type(data).__name__}, not an object. Fetch the model again.")
    return data


def _header(path: Path) -> dict[str, dict[str, Any]]:
    size = path.stat().st_size
    try:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            if length > size:
                raise ValueError("its header is longer than the file")
            tensors: dict[str, dict[str, Any]] = json.loads(file.read(length))
        tensors.pop("__metadata__", None)
        end = max((tensor["data_offsets"][1] for tensor in tensors.values()), default=0)
    except (ValueError, KeyError, TypeError, AttributeError, struct.error) as error:
        raise CorruptModel(f"{path} is not a whole safetensors file: {error}. Fetch the model again.") from error
    if 8 + length + end > size:
        raise CorruptModel(f"{path} is cut short: {size:,} of {8 + length + end:,} bytes. Fetch the model again.")
    return tensors


def _gb(count: int) -> str:
    return f"{count / 1e9:.1f} GB"
