"""What the page says about the loaded model. Its folder stays on the server: a path tells more than a visitor needs."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import fields

from engine.config import PRESETS
from engine.facts import ModelInfo
from explorer.live.frame import Json, number
from explorer.live.record_payload import sampling_json
from explorer.workspace.examples import EXAMPLES

_SHORT_DTYPES = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}
_NOT_SENT = {"folder", "shape"}


def model_json(info: ModelInfo) -> dict[str, Json]:
    """The model in numbers, and in one line."""
    values = {f.name: json_safe(getattr(info, f.name)) for f in fields(info) if f.name not in _NOT_SENT}
    return {**values, "chips": chips(info)}


def chips(info: ModelInfo) -> str:
    """What it is, where its weights come from, how it runs."""
    parts = (info.name, info.origin, _SHORT_DTYPES.get(info.dtype, info.dtype), info.device)
    return " · ".join(part for part in parts if part)


@functools.cache
def presets_json() -> dict[str, Json]:
    """Sampling settings that have a name."""
    return {name: sampling_json(sampling) for name, sampling in PRESETS.items()}


@functools.cache
def examples_json() -> list[Json]:
    """Prompts to start from."""
    return [{"label": e.label, "prompt": e.prompt, "mode": e.mode} for e in EXAMPLES]


def json_safe(value: object) -> Json:
    """A value from a model's own files as JSON: what JSON cannot say becomes text, or null."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return number(value)
    if isinstance(value, Mapping):
        return {str(key): json_safe(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [json_safe(inner) for inner in value]
    return str(value)
