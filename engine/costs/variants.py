"""The same model with its cache kept in another way: other key heads, no window, a latent written out or put in.

One function for each, so that whoever asks gets one number.
"""

from __future__ import annotations

from dataclasses import replace

from engine.costs.shape import ModelShape
from engine.costs.sizes import CachedLayers, Latent


def without_window(shape: ModelShape) -> ModelShape:
    """Every layer keeps the whole sequence."""
    return replace(shape, window=None, cache=_merged(tuple(replace(one, window=None) for one in shape.cache)))


def written_out(shape: ModelShape) -> ModelShape:
    """A latent cache without the compression: a full key and a full value for every head.

    Keys are nope + rope wide and values `value`; as one width for both, half their sum: weights and operations are the
    same. A model without a latent is as it was.
    """
    latent = shape.latent
    if latent is None:
        return shape
    key = latent.nope + latent.rope
    cache = tuple(replace(one, heads=shape.num_heads, key=key, value=latent.value) for one in shape.cache)
    width = (key + latent.value) // 2
    return replace(shape, latent=None, num_kv_heads=shape.num_heads, head_dim=width, cache=cache)


def with_key_heads(shape: ModelShape, heads: int) -> ModelShape:
    """So many heads of keys and values in every layer that caches; a latent is written out for it."""
    plain = written_out(shape)
    return replace(plain, num_kv_heads=heads, cache=tuple(replace(one, heads=heads) for one in plain.cache))


def with_latent(shape: ModelShape) -> ModelShape:
    """Its own latent; where it has none, one of four heads' width and half a head for positions, as DeepSeek-V2 has."""
    if shape.latent:
        return shape
    width = shape.head_dim
    latent = Latent(q_rank=0, kv_rank=4 * width, nope=width, rope=max(1, width // 2), value=width)
    cache = tuple(replace(one, heads=1, key=4 * one.key, value=max(1, one.key // 2)) for one in shape.cache)
    return replace(shape, latent=latent, cache=cache)


def _merged(cache: tuple[CachedLayers, ...]) -> tuple[CachedLayers, ...]:
    """Layers that keep the same, counted together."""
    counts: dict[CachedLayers, int] = {}
    for one in cache:
        kind = replace(one, layers=1)
        counts[kind] = counts.get(kind, 0) + one.layers
    return tuple(replace(kind, layers=layers) for kind, layers in counts.items())
