"""A decoder that can be priced: its sizes, its parameters, and what it caches.

The number that most calculators get wrong is the cache: it has key-value heads, not query heads, and a head
width of its own that need not be hidden size over heads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from engine.costs.parameters import Parameters, count
from engine.costs.sizes import CachedLayers, Sizes
from engine.errors import InvalidConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape(Sizes):
    """The sizes of a decoder, and what follows from them."""

    @property
    def knows_weights(self) -> bool:
        """Whether parameters and operations are known, and not the cache alone."""
        return not self.cache

    @property
    def parameters(self) -> Parameters:
        """Parameters by where they sit. Raises InvalidConfig where only the cache is known."""
        if not self.knows_weights:
            raise InvalidConfig("Only the cache of this architecture is known here, not its weights and operations.")
        return count(self)

    @property
    def cached_layers(self) -> tuple[CachedLayers, ...]:
        """The layers by what they keep."""
        if self.cache:
            return self.cache
        if self.latent:
            key, value, heads = self.latent.kv_rank, self.latent.rope, 1  # one latent serves as key and value
        else:
            key, value, heads = self.head_dim, self.head_dim, self.num_kv_heads
        windowed = self.window.layers if self.window else 0
        all_kept = CachedLayers(layers=self.num_layers - windowed, heads=heads, key=key, value=value)
        if self.window is None:
            return (all_kept,)
        short = replace(all_kept, layers=windowed, window=self.window.size)
        return tuple(one for one in (all_kept, short) if one.layers)

    @property
    def kv_elements_per_token(self) -> int:
        """Numbers one token adds to the cache, over all layers."""
        return sum(one.kept(1) for one in self.cached_layers)

    def kv_bytes_per_token(self, dtype_bytes: float) -> int:
        """Bytes one token adds to the cache, over all layers, before any window is full."""
        return math.ceil(self.kv_elements_per_token * dtype_bytes)

    def kv_bytes(self, seq_len: int, dtype_bytes: float) -> int:
        """Bytes of a sequence's cache where layers with a window keep no more than their window."""
        return math.ceil(sum(one.kept(seq_len) for one in self.cached_layers) * dtype_bytes)
