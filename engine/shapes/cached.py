"""What a config's layers cache: each by its kind, with the widths that some layers have of their own."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from engine.costs.sizes import CachedLayers, Latent, Window
from engine.errors import InvalidConfig
from engine.shapes.dialects import Dialect
from engine.shapes.fields import Fields
from engine.shapes.layer_kinds import BOTH, CHUNKED, FULL, INDEXED, NOTHING, SHARED, SLIDING, STATE, kinds_of

NUMBER = re.compile(r"[0-9]{1,5}")
OWN = ("head_dim", "num_key_value_heads", "sliding_window")  # what a layer can have of its own


@dataclass(frozen=True, slots=True)
class Caching:
    """What is cached. `layers` is empty where all layers are alike but for a `window`, which the shape says itself.

    remarks  in words, which layers keep nothing that grows
    """

    layers: tuple[CachedLayers, ...] = ()
    window: Window | None = None
    remarks: tuple[str, ...] = ()


def read_caching(
    fields: Fields, dialect: Dialect, layers: int, *, kv_heads: int, head_dim: int, latent: Latent | None
) -> Caching:
    """What the layers of a config cache. Raises InvalidConfig."""
    kinds = kinds_of(fields, dialect, layers)
    sizes = {SLIDING: _window_size(fields, dialect), CHUNKED: fields.optional_size("attention_chunk_size")}
    own = _per_layer(fields, layers)
    if not dialect.cache_only and not own:
        return Caching(window=_one_window(fields, kinds, sizes))
    key, value = (latent.kv_rank, latent.rope) if latent else (head_dim, fields.optional_size("v_head_dim") or head_dim)
    index = fields.size("index_head_dim") if dialect.index else 0
    plain = CachedLayers(layers=1, heads=1 if latent else kv_heads, key=key, value=value)
    each = [
        _layer(fields, dialect, kind, plain, sizes, own.get(i, {}), index)
        for i, kind in enumerate(kinds)
        if kind not in (STATE, NOTHING, SHARED)
    ]
    if not each:
        raise InvalidConfig(
            f"None of the {layers} layers has attention, so nothing that is cached grows with the text. "
            "Give a model with attention in some of its layers."
        )
    grouped = tuple(replace(one, layers=count) for one, count in Counter(each).items())
    return Caching(grouped, None, tuple(_remarks(kinds)))


def _layer(
    fields: Fields,
    dialect: Dialect,
    kind: str,
    plain: CachedLayers,
    sizes: Mapping[str, int | None],
    own: Mapping[str, Any],
    index: int,
) -> CachedLayers:
    """One layer's cache."""
    found = replace(plain, window=sizes.get(kind), index=index if kind == INDEXED else 0)
    if dialect.wide_globals and kind == FULL and not own:
        found = _wide(fields, found)
    inner = Fields(own, {}, f"{fields.prefix}per_layer_config.")
    if width := inner.optional_size("head_dim"):
        found = replace(found, key=width, value=width)
    if heads := inner.optional_size("num_kv_heads"):
        found = replace(found, heads=heads)
    if kind == SLIDING and (window := inner.optional_size("sliding_window")):
        found = replace(found, window=window)
    return found


def _wide(fields: Fields, plain: CachedLayers) -> CachedLayers:
    """Gemma 4's layers with full attention: wider heads, and fewer of them where keys serve as values."""
    width = fields.optional_size("global_head_dim") or 512
    heads = fields.optional_size("num_global_key_value_heads") if fields.flag("attention_k_eq_v") else None
    return replace(plain, heads=heads or plain.heads, key=width, value=width)


def _per_layer(fields: Fields, layers: int) -> dict[int, Mapping[str, Any]]:
    """What single layers have of their own, as transformers writes it: {"5": {"head_dim": 512}}."""
    found = {}
    for name, own in fields.part("per_layer_config").items():
        number = int(str(name)) if NUMBER.fullmatch(str(name)) else -1  # a key of JSON, or of a loaded config
        if not 0 <= number < layers or not isinstance(own, Mapping):
            raise InvalidConfig(
                f"{fields.prefix}per_layer_config must give an object for numbers of layers, got {str(name)[:40]!r}."
            )
        if other := [str(one)[:40] for one in own if one not in OWN]:
            fields.doubts.append(f"{fields.prefix}per_layer_config gives single layers {other[0]!r}: not known here")
        found[number] = own
    return found


def _window_size(fields: Fields, dialect: Dialect) -> int | None:
    if not dialect.has_windows and fields.get("layer_types") is None:
        return None
    if dialect.layout in ("after", "without rotation") and not fields.flag("use_sliding_window"):
        return None
    return fields.optional_size("sliding_window") if fields.get("sliding_window") else None


def _one_window(fields: Fields, kinds: Sequence[str], sizes: Mapping[str, int | None]) -> Window | None:
    """The window of a model whose layers differ in nothing else."""
    found = Counter(kind for kind in kinds if sizes.get(kind))
    if len(found) > 1:
        raise InvalidConfig(f"{fields.prefix}layer_types has windows and chunks both. Models with one are covered.")
    return next((Window(size=sizes[kind] or 0, layers=count) for kind, count in found.items()), None)


def _remarks(kinds: Sequence[str]) -> list[str]:
    said, of = [], f"of {len(kinds)} layers"
    if states := kinds.count(STATE):
        said.append(f"{states} {of} keep a state in place of keys and values; it does not grow and is not counted")
    if both := kinds.count(BOTH):
        said.append(f"{both} {of} keep a state beside keys and values; it does not grow and is not counted")
    if shared := kinds.count(SHARED):
        said.append(f"{shared} {of} read the keys and values of earlier layers and keep none")
    return said
