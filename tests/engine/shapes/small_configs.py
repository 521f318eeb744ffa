"""A small config of any model type that transformers knows: its own default, with the sizes made small."""

from __future__ import annotations

from typing import Any

from transformers import PreTrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

SIZES: dict[str, Any] = {
    "vocab_size": 320,
    "hidden_size": 64,
    "n_embd": 64,
    "d_model": 64,
    "intermediate_size": 96,
    "ffn_dim": 96,
    "intermediate_size_mlp": 96,
    "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 32,
    "shared_intermediate_size": 32,
    "num_attention_heads": 4,
    "n_head": 4,
    "num_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "rotary_dim": 8,
    "max_position_embeddings": 128,
    "n_positions": 128,
    "sliding_window": 16,
    "num_experts": 4,
    "num_local_experts": 4,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "num_experts_per_token": 2,
    "n_group": 1,
    "topk_group": 1,
    "q_lora_rank": 32,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 16,
    "qk_rope_head_dim": 8,
    "v_head_dim": 16,
    "index_head_dim": 16,
    "index_n_heads": 2,
    "index_topk": 4,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
    "mamba_n_heads": 8,
    "mamba_d_head": 16,
    "mamba_expand": 2,
    "mamba_d_state": 8,
    "ssm_state_size": 8,
    "mamba_num_heads": 8,
    "mamba_head_dim": 16,
    "n_groups": 1,
    "mamba_n_groups": 1,
    "vocab_size_per_layer_input": 320,
    "hidden_size_per_layer_input": 8,
    "word_embed_proj_dim": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
LATENT: dict[str, Any] = {"num_key_value_heads": 4, "head_dim": 8}
OWN: dict[str, dict[str, Any]] = {
    "deepseek_v2": LATENT | {"num_experts_per_tok": 2},
    "deepseek_v3": LATENT,
    "deepseek_v32": LATENT,
    "glm4_moe_lite": LATENT,
    "kimi_linear": LATENT | {"linear_head_dim": 16, "linear_num_heads": 4},
    "ministral": {"head_dim": 16},
    "nemotron": {"head_dim": 16, "num_key_value_heads": 2},
    "hunyuan_v1_dense": {"head_dim": 16},
    "hunyuan_v1_moe": {"head_dim": 16},
    "bamba": {"attn_layer_indices": [2, 5]},
    "granitemoehybrid": {
        "layer_types": ["mamba", "attention", "mamba", "mamba", "mamba", "attention", "mamba", "mamba"]
    },
    "falcon_h1": {"mamba_d_ssm": 128},
    "gemma3n_text": {"num_kv_shared_layers": 3, "num_hidden_layers": 10},
    "gpt_neo": {"attention_types": [[["global", "local"], 4]]},
}  # what a type cannot be built small without
LAYER_COUNTS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")


def small_config(kind: str, **changes: Any) -> PreTrainedConfig:
    """Eight layers of this type, unless `changes` or the type say otherwise."""
    own = OWN.get(kind, {}) | changes
    default = CONFIG_MAPPING[kind]().to_dict()
    sizes = {name: value for name, value in SIZES.items() if default.get(name) is not None}
    counts = dict.fromkeys((name for name in LAYER_COUNTS if name in default), 8)
    return CONFIG_MAPPING[kind](**(sizes | counts | own))
