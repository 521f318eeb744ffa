"""The same model with its cache kept in other ways: what sharing keys, compressing them and windows are worth."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from engine.costs.shape import ModelShape
from engine.costs.sizes import CachedLayers
from engine.costs.variants import with_key_heads, without_window, written_out
from explorer.say import words_beside

say = words_beside(__file__)


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
        return Kind(say("variants.mla"), shape, _formula(shape), is_own=True)
    windows = sorted({one.window for one in shape.cached_layers if one.window})
    name, sizes = _sharing(shape), " or ".join(f"{size:,}" for size in windows)
    if windows:
        name = say("variants.windowed", name=name, size=sizes)
    return Kind(say("variants.this_model", name=name), shape, _formula(shape), is_own=True)


def kinds(shape: ModelShape) -> tuple[Kind, ...]:
    """The model as it is first, then what it would be with other key-value heads or without its window."""
    found = [own_kind(shape)]
    plain = without_window(shape)
    if plain != shape:
        found.append(Kind(say("variants.without_window"), plain, _formula(plain)))
    if shape.latent:
        plain = written_out(plain)
        found.append(Kind(say("variants.written_out"), plain, _formula(plain)))
    for heads, name in ((plain.num_heads, say("variants.mha")), (1, say("variants.mqa"))):
        other = with_key_heads(plain, heads)
        if other != plain:
            found.append(Kind(name, other, _formula(other)))
    return tuple(found)


def _sharing(shape: ModelShape) -> str:
    if shape.num_kv_heads == shape.num_heads:
        return "MHA"
    return "MQA" if shape.num_kv_heads == 1 else say("variants.gqa", num_heads=shape.num_heads // shape.num_kv_heads)


def _formula(shape: ModelShape) -> str:
    """What one token adds: so many layers, times the numbers each keeps."""
    layers: Counter[str] = Counter()
    for one in shape.cached_layers:
        layers[_numbers(shape, one)] += one.layers
    return "; ".join(say("variants.layers", count=count, numbers=numbers) for numbers, count in layers.items())


def _numbers(shape: ModelShape, one: CachedLayers) -> str:
    if shape.latent:
        numbers = say("variants.latent", key=one.key, value=one.value)
    elif one.key == one.value:
        numbers = say("variants.alike", heads=one.heads, key=one.key)
    else:
        numbers = say("variants.unlike", heads=one.heads, key=one.key + one.value)
    if one.index:
        numbers = say("variants.indexed", numbers=numbers, index=one.index)
    return f"({numbers})" if shape.latent or one.index else numbers
