"""The same model with its cache kept in other ways: what sharing keys, compressing them and windows are worth."""

from __future__ import annotations

from dataclasses import dataclass, replace

from engine.costs.shape import ModelShape


@dataclass(frozen=True, slots=True)
class Kind:
    """A way to keep the cache. `formula` is what one token of one layer adds, in numbers kept."""

    name: str
    shape: ModelShape
    formula: str
    is_own: bool = False


def own_kind(shape: ModelShape) -> Kind:
    """How the model itself keeps its cache."""
    if shape.latent:
        formula = f"latent {shape.latent.kv_rank} + rotated key {shape.latent.rope}"
        return Kind("as it is: MLA", shape, formula, is_own=True)
    name = _sharing(shape) + (f", window {shape.window.size:,}" if shape.window else "")
    return Kind(f"as it is: {name}", shape, _formula(shape), is_own=True)


def kinds(shape: ModelShape) -> tuple[Kind, ...]:
    """The model as it is first, then what it would be with other key-value heads or without its window."""
    found = [own_kind(shape)]
    plain = shape
    if shape.window:
        plain = replace(shape, window=None)
        found.append(Kind("without the window", plain, _formula(plain)))
    if shape.latent:
        plain = _expanded(plain)
        found.append(Kind("MLA's keys and values written out", plain, _formula(plain)))
    for heads, name in ((plain.num_heads, "MHA: a key head per query head"), (1, "MQA: one key head for all")):
        if heads != plain.num_kv_heads:
            other = replace(plain, num_kv_heads=heads)
            found.append(Kind(name, other, _formula(other)))
    return tuple(found)


def _expanded(shape: ModelShape) -> ModelShape:
    """What a cache without the compression holds: a full key and a full value for every head.

    Keys are nope + rope wide and values `value`; as one width for both, half their sum.
    """
    latent = shape.latent
    assert latent is not None, "only a latent cache can be written out"
    width, rest = divmod(latent.nope + latent.rope + latent.value, 2)
    assert rest == 0, "a key and a value together are an even number of numbers"
    return replace(shape, latent=None, num_kv_heads=shape.num_heads, head_dim=width)


def _sharing(shape: ModelShape) -> str:
    if shape.num_kv_heads == shape.num_heads:
        return "MHA"
    return "MQA" if shape.num_kv_heads == 1 else f"GQA, {shape.num_heads // shape.num_kv_heads} queries a key head"


def _formula(shape: ModelShape) -> str:
    return f"2 × {shape.num_kv_heads} heads × {shape.head_dim}"
