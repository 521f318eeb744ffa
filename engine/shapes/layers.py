"""Parts that only some models have: experts, latent attention, windows."""

from __future__ import annotations

from engine.costs.shape import Experts, Latent, Window
from engine.errors import InvalidConfig
from engine.shapes.dialects import Dialect
from engine.shapes.fields import Fields

EXPERT_COUNTS = ("num_local_experts", "num_experts", "n_routed_experts")
SHORT_SIGHTED = ("sliding_attention", "chunked_attention")
ATTENTION = ("full_attention", *SHORT_SIGHTED)


def read_latent(fields: Fields) -> Latent | None:
    """Latent attention, where the config has a compressed key-value rank."""
    if fields.values.get("kv_lora_rank") is None:
        return None
    return Latent(
        q_rank=fields.optional_size("q_lora_rank") or 0,
        kv_rank=fields.size("kv_lora_rank"),
        nope=fields.size("qk_nope_head_dim"),
        rope=fields.size("qk_rope_head_dim"),
        value=fields.size("v_head_dim"),
    )


def read_experts(fields: Fields, kind: str, dialect: Dialect, layers: int) -> Experts | None:
    """The mixture of experts, where the config counts any."""
    name = next((n for n in EXPERT_COUNTS if fields.values.get(n)), None)
    if name is None:
        if dialect.always_experts:
            raise InvalidConfig(
                f"A {kind} has experts, and the config counts none. Add {fields.prefix}num_local_experts."
            )
        return None
    count, active = fields.size(name), _active(fields)
    if active > count:
        raise InvalidConfig(
            f"{fields.prefix}num_experts_per_tok {active} is more than {name} {count}. Mend one of them."
        )
    shared = fields.optional_size("n_shared_experts") if fields.values.get("n_shared_experts") else 0
    shared_width = fields.optional_size("shared_expert_intermediate_size") or 0
    is_llama4 = kind == "llama4_text"
    return Experts(
        count=count,
        active=active,
        width=fields.optional_size("moe_intermediate_size") or fields.size("intermediate_size"),
        layers=_expert_layers(fields, layers),
        shared=1 if shared_width or is_llama4 else shared or 0,
        shared_width=shared_width,
        router_bias=dialect.router_bias,
        biased=dialect.biased_experts,
        shared_gate=bool(shared_width),
    )


def _active(fields: Fields) -> int:
    for name in ("num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_topk"):
        if fields.values.get(name) is not None:
            return fields.size(name)
    return fields.size("num_experts_per_tok")


def _expert_layers(fields: Fields, layers: int) -> int:
    """How many layers have experts: all but the first few, every n-th, or those that are listed."""
    listed = fields.values.get("moe_layers")
    if isinstance(listed, list):
        return len([i for i in listed if isinstance(i, int) and 0 <= i < layers])
    every = fields.optional_size("decoder_sparse_step") or fields.optional_size("interleave_moe_layer_step") or 1
    first_dense = int(fields.values.get("first_k_dense_replace") or 0)
    dense = fields.values.get("mlp_only_layers") or ()
    return sum(i >= first_dense and (i + 1) % every == 0 and i not in dense for i in range(layers))


def read_window(fields: Fields, dialect: Dialect, layers: int) -> Window | None:
    """Layers that see only their last keys."""
    kinds = fields.kinds()
    if kinds is not None:
        if len(kinds) != layers:
            raise InvalidConfig(f"{fields.prefix}layer_types has {len(kinds)} entries for {layers} layers.")
        if other := next((kind for kind in kinds if kind not in ATTENTION), None):
            raise InvalidConfig(
                f"{fields.prefix}layer_types has {other!r}: those layers have no KV cache that grows, and their price "
                "is not covered here. Models with attention in every layer are."
            )
    size = fields.optional_size("attention_chunk_size") if kinds and "chunked_attention" in kinds else _window(fields)
    if size is None:
        return None
    windowed = sum(k in SHORT_SIGHTED for k in kinds) if kinds is not None else _windowed(fields, dialect, layers)
    return Window(size=size, layers=windowed) if windowed else None


def _window(fields: Fields) -> int | None:
    if not fields.values.get("sliding_window") or fields.values.get("use_sliding_window") is False:
        return None
    return fields.optional_size("sliding_window")


def _windowed(fields: Fields, dialect: Dialect, layers: int) -> int:
    """Layers with the window where the config does not list the kinds of its layers."""
    if dialect.window == "all":
        return layers
    if dialect.window == "after":
        return max(0, layers - int(fields.values.get("max_window_layers") or 0))
    if dialect.window == "alternate":
        every = fields.optional_size("sliding_window_pattern") or fields.optional_size("_sliding_window_pattern")
        return layers - layers // (every or dialect.window_every)
    return 0
