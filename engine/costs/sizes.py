"""The sizes of a decoder as plain numbers: what its config says, and nothing that follows from it."""

from __future__ import annotations

from dataclasses import dataclass, fields


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
class CachedLayers:
    """Layers that keep the same of every token: `layers` of them.

    heads       key heads; each keeps `key` + `value` numbers. A latent is one head, its rotated key the value
    index       numbers beside them, by which a layer chooses the keys that it reads
    window      tokens kept at most; None keeps all
    """

    layers: int
    heads: int
    key: int
    value: int
    index: int = 0
    window: int | None = None

    @property
    def width(self) -> int:
        """Numbers one token adds in one of these layers."""
        return self.heads * (self.key + self.value) + self.index

    def kept(self, seq_len: int) -> int:
        """Numbers all of these layers keep of a sequence."""
        return self.layers * self.width * (seq_len if self.window is None else min(seq_len, self.window))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The sizes of a decoder.

    mlp_matrices       3: gate, up and down; 2: up and down
    tied               input embedding and head are one matrix, and it counts once
    norms_per_layer    norms of the hidden width; `norm_vectors` is 1 for a scale, 2 for scale and shift, 0 for none
    qk_norm            parameters of a layer's query and key norms; `sinks`: one learnt number per query head
    learned_positions  rows of a learnt position table; 0 for rotations
    cache              what is cached, where only that is known of an architecture; its weights and operations are not
    assumed            in words, what was not said by whoever described the model and was taken for granted
    doubts             in words, what was not understood: the numbers may be wrong
    remarks            in words, what the cache's numbers leave out
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
    cache: tuple[CachedLayers, ...] = ()
    assumed: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        sizes = [f.name for f in fields(self) if f.type == "int" and not f.name.startswith("norm")]
        for name in sizes:
            low = 0 if name in ("qk_norm", "learned_positions", "intermediate_size") else 1
            if getattr(self, name) < low:
                raise ValueError(f"{name} must be at least {low}, got {getattr(self, name)}.")
