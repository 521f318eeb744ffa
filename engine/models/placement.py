"""Where a model's weights will be held: which device, how much of it is free, and how wide each value will be."""

from __future__ import annotations

from typing import Literal

import torch

from engine.errors import InvalidSettings
from engine.models.fit import free_memory


def device_for(wanted: str) -> torch.device:
    """The device that a setting names; "auto" takes a GPU where there is one."""
    if wanted == "cuda" and not torch.cuda.is_available():
        raise InvalidSettings("device is cuda, and PyTorch finds no CUDA device here. Use cpu or auto.")
    return torch.device("cpu" if wanted == "cpu" or not torch.cuda.is_available() else "cuda")


def dtype_for(wanted: str, device: torch.device, own: object) -> torch.dtype:
    """The number format of the weights once loaded; "auto" keeps the model's `own` on a GPU."""
    if wanted != "auto":
        named: torch.dtype = getattr(torch, wanted)
        return named
    return own if device.type == "cuda" and isinstance(own, torch.dtype) else torch.float32


def free_on(device: torch.device) -> int:
    """Free bytes where the weights will be held."""
    return free_memory() if device.type == "cpu" else torch.cuda.mem_get_info(device)[0]


def memory_of(device: torch.device) -> Literal["memory", "GPU memory"]:
    """The device's memory, by name."""
    return "memory" if device.type == "cpu" else "GPU memory"
