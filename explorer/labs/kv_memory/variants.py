"""The same model with its cache kept in other ways: what sharing keys, compressing them and windows are worth."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from engine.costs.shape import ModelShape
from engine.costs.sizes import CachedLayers
from engine.costs.variants import with_key_heads, without_window, written_out


@dataclass(frozen=True, slots=True)
class Kind:
    """A way to keep the cache. `formula` is what one token adds, in numbers kept."""

    name: str
    shape: ModelShape
    formula: str
    is_own: bool = False


def own_kind(shape: ModelShape) -> Kind:
    """How the model itself keeps its cache."""
    if shape.latent:
        return Kind("this model: MLA", shape, _formula(shape), is_own=True)
    windows = sorted({one.window for one in shape.cached_layers if one.window})
    name = _sharing(shape) + (f", window {' or '.join(f'{size:,}' for size in windows)}" if windows else "")
    return Kind(f"this model: {name}", shape, _formula(shape), is_own=True)


def kinds(shape: ModelShape) -> tuple[Kind, ...]:
    """The model as it is first, then what it would be with other key-value heads or without its window."""
    found = [own_kind(shape)]
    plain = without_window(shape)
    if plain != shape:
        found.append(Kind("without the window", plain, _formula(plain)))
    if shape.latent:
        plain = written_out(plain)
        found.append(Kind("MLA's keys and values written out", plain, _formula(plain)))
    for heads, name in ((plain.num_heads, "MHA: one KV head per query head"), (1, "MQA: one KV head")):
        other = with_key_heads(plain, heads)
        if other != plain:
            found.append(Kind(name, other, _formula(other)))
    return tuple(found)


def _sharing(shape: ModelShape) -> str:
    if shape.num_kv_heads == shape.num_heads:
        return "MHA"
    return "MQA" if shape.num_kv_heads == 1 else f"GQA, {shape.num_heads // shape.num_kv_heads} query heads per KV head"


def _formula(shape: ModelShape) -> str:
    """What one token adds: so many layers, times the numbers each keeps."""
    layers: Counter[str] = Counter()
    for one in shape.cached_layers:
        layers[_numbers(shape, one)] += one.layers
    return "; ".join(f"{count} layers × {numbers}" for numbers, count in layers.items())


def _numbers(shape: ModelShape, one: CachedLayers) -> str:
    index = f" + index key {one.index}" if one.index else ""
    if shape.latent:
        return f"(latent {one.key} + rotated key {one.value}{index})"
    widths = (
        f"2 × {one.heads} heads × {one.key}" if one.key == one.value else f"{one.heads} heads × {one.key + one.value}"
    )
    return widths + index
