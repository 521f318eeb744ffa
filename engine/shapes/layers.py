"""Parts that only some models have: experts, and latent attention."""

from __future__ import annotations

from engine.costs.sizes import Experts, Latent
from engine.errors import InvalidConfig
from engine.shapes.dialects import Dialect
from engine.shapes.fields import Fields

EXPERT_COUNTS = ("num_local_experts", "num_experts", "n_routed_experts")
ACTIVE_COUNTS = ("num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_topk")


def read_latent(fields: Fields, dialect: Dialect) -> Latent | None:
    """Latent attention, where the config has a compressed key-value rank or its type always has one."""
    if fields.get("kv_lora_rank") is None and not dialect.latent:
        return None
    found = Latent(
        q_rank=fields.optional_size("q_lora_rank") or 0,
        kv_rank=fields.size("kv_lora_rank"),
        nope=fields.size("qk_nope_head_dim"),
        rope=fields.size("qk_rope_head_dim"),
        value=fields.size("v_head_dim"),
    )
    if (found.nope + found.rope + found.value) % 2:
        raise InvalidConfig(
            f"{fields.prefix}qk_nope_head_dim, qk_rope_head_dim and v_head_dim add up to an odd number, "
            f"{found.nope + found.rope + found.value:,}. No model has that; mend one of them."
        )
    return found


def read_experts(fields: Fields, kind: str, dialect: Dialect, layers: int) -> Experts | None:
    """The mixture of experts, where the config counts any."""
    name = next((n for n in EXPERT_COUNTS if fields.get(n)), None)
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
    shared = fields.whole("n_shared_experts")
    shared_width = fields.optional_size("shared_expert_intermediate_size") or 0
    is_llama4 = kind == "llama4_text"
    return Experts(
        count=count,
        active=active,
        width=fields.optional_size("moe_intermediate_size") or fields.size("intermediate_size"),
        layers=_expert_layers(fields, layers),
        shared=1 if shared_width or is_llama4 else shared,
        shared_width=shared_width,
        router_bias=dialect.router_bias,
        biased=dialect.biased_experts,
        shared_gate=bool(shared_width),
    )


def _active(fields: Fields) -> int:
    return next((fields.size(name) for name in ACTIVE_COUNTS if fields.get(name) is not None), None) or fields.size(
        ACTIVE_COUNTS[0]
    )


def _expert_layers(fields: Fields, layers: int) -> int:
    """How many layers have experts: all but the first few, every n-th, or those that are listed."""
    listed = fields.numbers("moe_layers")
    every = fields.optional_size("decoder_sparse_step") or fields.optional_size("interleave_moe_layer_step") or 1
    first_dense = fields.whole("first_k_dense_replace")
    dense = set(fields.numbers("mlp_only_layers") or ())
    if listed is not None:
        return len({i for i in listed if 0 <= i < layers})
    return sum(i >= first_dense and (i + 1) % every == 0 and i not in dense for i in range(layers))
