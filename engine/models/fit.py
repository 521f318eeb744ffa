"""Will it fit, asked before anything is loaded; and JSON of unknown origin, read or refused in words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psutil

from engine.errors import CorruptModel, ModelTooLarge

ROOM = 1.05  # beside the weights: activations, tokenizer, one tensor in two copies while it is moved
CGROUP = Path("/sys/fs/cgroup")


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
    except (OSError, ValueError, RecursionError) as error:
        raise CorruptModel(f"{path} is not valid JSON: {error}. Fetch the model again.") from error
    if not isinstance(data, dict):
        raise CorruptModel(f"{path} holds {type(data).__name__}, not an object. Fetch the model again.")
    return data


def _gb(count: int) -> str:
    return f"{count / 1e9:.1f} GB"
