"""The sizes of a decoder that its price depends on, and what it caches.

The number that most calculators get wrong is the cache: it has key-value heads, not query heads, and a head
width of its own that need not be hidden size over heads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from engine.costs.parameters import Parameters, count


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """A mixture of experts in place of the MLP.

    count, active  experts in a layer, and how many of them a token is sent to
    width          intermediate size of one expert
    layers         layers that have experts; the others have a dense MLP of `intermediate_size`
    shared         experts that every token goes through besides; `shared_width` is the width of each
    router         whether the product that chooses the experts is counted
    router_bias    one number per expert beside it; `biased`: the experts' own products have biases
    shared_gate    one more row of the router, for the shared expert
    """

    count: int
    active: int
    width: int
    layers: int
    shared: int = 0
    shared_width: int = 0
    router: bool = True
    router_bias: bool = False
    biased: bool = False
    shared_gate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Latent:
    """Multi-head latent attention: one compressed vector per token and layer serves as key and as value.

    q_rank   width queries are compressed to; 0 where they are not
    kv_rank  width of the compressed key and value
    nope, rope  the parts of a query's and a key's head without and with a rotation; `value` is a value head's width
    """

    q_rank: int
    kv_rank: int
    nope: int
    rope: int
    value: int

    @property
    def cached_width(self) -> int:
        """Numbers one token adds to the cache in one layer."""
        return self.kv_rank + self.rope


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Layers whose queries see the last `size` keys only: `layers` of them."""

    size: int
    layers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """The sizes of a decoder.

    mlp_matrices       3: gate, up and down; 2: up and down
    tied               input embedding and head are one matrix, and it counts once
    norms_per_layer    norms of the hidden width; `norm_vectors` is 1 for a scale, 2 for scale and shift, 0 for none
    qk_norm            parameters of a layer's query and key norms; `sinks`: one learnt number per query head
    learned_positions  rows of a learnt position table; 0 for rotations
    assumed            in words, what was not said by whoever described the model and was taken for granted
    """

    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    hidden_size: int
    intermediate_size: int
    vocab_size: int
    mlp_matrices: int = 3
    tied: bool = False
    qkv_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    head_bias: bool = False
    norms_per_layer: int = 2
    norm_vectors: int = 1
    qk_norm: int = 0
    sinks: bool = False
    embedding_norm: bool = False
    learned_positions: int = 0
    experts: Experts | None = None
    latent: Latent | None = None
    window: Window | None = None
    context_limit: int | None = None
    assumed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        sizes = [f.name for f in fields(self) if f.type == "int" and not f.name.startswith("norm")]
        for name in sizes:
            low = 0 if name in ("qk_norm", "learned_positions", "intermediate_size") else 1
            if getattr(self, name) < low:
                raise ValueError(f"{name} must be at least {low}, got {getattr(self, name)}.")

    @property
    def parameters(self) -> Parameters:
        """Parameters by where they sit."""
        return count(self)

    @property
    def windowed_layers(self) -> int:
        """Layers that see their last keys only."""
        return self.window.layers if self.window else 0

    @property
    def kv_elements_per_token(self) -> int:
        """Numbers one token adds to the cache, over all layers."""
        return self.num_layers * self._cached_width

    def kv_bytes_per_token(self, dtype_bytes: float) -> int:
        """Bytes one token adds to the cache, over all layers, before any window is full."""
        return math.ceil(self.kv_elements_per_token * dtype_bytes)

    def kv_bytes(self, seq_len: int, dtype_bytes: float) -> int:
        """Bytes of a sequence's cache where layers with a window keep no more than their window."""
        kept = self.num_layers * seq_len
        if self.window:
            kept -= self.window.layers * max(0, seq_len - self.window.size)
        return math.ceil(kept * self._cached_width * dtype_bytes)

    @property
    def _cached_width(self) -> int:
        if self.latent:
            return self.latent.cached_width  # one latent serves as key and value
        return 2 * self.num_kv_heads * self.head_dim  # 2: one key, one value
