"""What a model type does that its config does not say: biases, norms, and fields with names of their own.

To add an architecture, add a Dialect; the tests hold every one against the model that transformers builds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

Flag = bool | str  # a str is the name of the config's field that says


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How a model type is built, beside what its config says.

    tied           whether input embedding and head are one, where the config is silent
    qk_norm        what its query and key norms span: a head each, all heads together, every head by itself
    qk_norm_field  the config's field that switches them on; always on without
    positions      whether positions are a learnt table, and rows it has beyond the context
    inner_factor   MLP width over hidden width where the config is silent; 0 where it must say
    window         which layers have the config's window when it lists no layer types: all, all but every n-th
                   (window_every, which a field may give), those after the first `max_window_layers`, or none
    defaults       values of transformers' own config class, where files leave them out
    """

    tied: bool = False
    mlp_matrices: int = 3
    qkv_bias: Flag = False
    output_bias: Flag = False
    mlp_bias: Flag = False
    head_bias: Flag = False
    norms_per_layer: int = 2
    norm_vectors: int = 1
    qk_norm: Literal["", "head", "width", "each head"] = ""
    qk_norm_field: str = ""
    qk_norm_vectors: int = 1
    sinks: bool = False
    embedding_norm: bool = False
    positions: bool = False
    extra_positions: int = 0
    inner_factor: int = 0
    window: Literal["none", "all", "alternate", "after"] = "none"
    window_every: int = 0
    always_experts: bool = False
    biased_experts: bool = False
    router_bias: bool = False
    defaults: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))


_BARE = Dialect(qkv_bias="attention_bias", output_bias="attention_bias")
_LLAMA = replace(_BARE, mlp_bias="mlp_bias")
_GPT2 = Dialect(
    tied=True, mlp_matrices=2, qkv_bias=True, output_bias=True, mlp_bias=True, norm_vectors=2,
    positions=True, inner_factor=4,
)  # fmt: skip
_GEMMA = replace(_BARE, tied=True)
_QWEN2 = Dialect(qkv_bias=True, window="after")
_QWEN3 = replace(_BARE, qk_norm="head", window="after")
_EXPERTS = Dialect(always_experts=True)

DIALECTS: MappingProxyType[str, Dialect] = MappingProxyType(
    {
        "llama": _LLAMA,
        "mistral": Dialect(window="all", defaults=MappingProxyType({"num_key_value_heads": 8})),
        "ministral": Dialect(window="all"),
        "mixtral": replace(_EXPERTS, window="all", defaults=MappingProxyType({"num_key_value_heads": 8})),
        "qwen2": _QWEN2,
        "qwen2_moe": replace(_QWEN2, qkv_bias="qkv_bias", defaults=MappingProxyType({"qkv_bias": True})),
        "qwen3": _QWEN3,
        "qwen3_moe": _QWEN3,
        "phi": Dialect(
            mlp_matrices=2, qkv_bias=True, output_bias=True, mlp_bias=True, head_bias=True, norms_per_layer=1,
            norm_vectors=2, qk_norm="head", qk_norm_field="qk_layernorm", qk_norm_vectors=2,
        ),
        "phi3": Dialect(window="all"),
        "phimoe": replace(_BARE, always_experts=True, head_bias="lm_head_bias", norm_vectors=2, window="all"),
        "gemma": _GEMMA,
        "gemma2": replace(_GEMMA, norms_per_layer=4, window="alternate", window_every=2),
        "gemma3_text": replace(
            _GEMMA, norms_per_layer=4, qk_norm="head", window="alternate", window_every=6,
            defaults=MappingProxyType(
                {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262_208}
            ),
        ),
        "gpt2": _GPT2,
        "gpt_bigcode": _GPT2,
        "gptj": Dialect(
            mlp_matrices=2, mlp_bias=True, head_bias=True, norms_per_layer=1, norm_vectors=2, inner_factor=4
        ),
        "gpt_neo": replace(_GPT2, qkv_bias=False),
        "gpt_neox": replace(
            _BARE, mlp_matrices=2, mlp_bias=True, norm_vectors=2,
            defaults=MappingProxyType({"attention_bias": True}),
        ),
        "gpt_oss": replace(
            _BARE, sinks=True, window="alternate", window_every=2, always_experts=True,
            biased_experts=True, router_bias=True, defaults=MappingProxyType({"attention_bias": True}),
        ),
        "opt": replace(
            _GPT2, qkv_bias="enable_bias", output_bias="enable_bias", mlp_bias="enable_bias", extra_positions=2,
            inner_factor=0, defaults=MappingProxyType({"enable_bias": True, "do_layer_norm_before": True}),
        ),
        "falcon": Dialect(
            tied=True, mlp_matrices=2, qkv_bias="bias", output_bias="bias", mlp_bias="bias", norm_vectors=2,
            inner_factor=4,
        ),
        "bloom": replace(_GPT2, positions=False, embedding_norm=True),
        "olmo": replace(_BARE, norm_vectors=0),
        "olmo2": replace(_BARE, qk_norm="width"),
        "olmo3": replace(_BARE, qk_norm="width", window="alternate", window_every=4),
        "olmoe": replace(_BARE, always_experts=True, qk_norm="width"),
        "smollm3": replace(_LLAMA, tied=True),
        "granite": _LLAMA,
        "granitemoe": replace(_BARE, always_experts=True),
        "stablelm": Dialect(
            qkv_bias="use_qkv_bias", norm_vectors=2, qk_norm="each head", qk_norm_field="qk_layernorm"
        ),
        "cohere": replace(
            _BARE, tied=True, norms_per_layer=1, qk_norm="each head", qk_norm_field="use_qk_norm"
        ),
        "cohere2": replace(_BARE, tied=True, norms_per_layer=1, window="alternate", window_every=4),
        "starcoder2": Dialect(
            tied=True, mlp_matrices=2, qkv_bias="use_bias", output_bias="use_bias", mlp_bias="use_bias",
            norm_vectors=2, window="all", defaults=MappingProxyType({"use_bias": True}),
        ),
        "llama4_text": replace(_BARE, always_experts=True, defaults=MappingProxyType({"attention_chunk_size": 8192})),
        "deepseek_v2": _BARE,
        "deepseek_v3": replace(_BARE, router_bias=True),
        "glm4": Dialect(qkv_bias="attention_bias", norms_per_layer=4),
        "nemotron": replace(_LLAMA, mlp_matrices=2, norm_vectors=2),
        "helium": replace(_LLAMA, output_bias=False),
        "arcee": replace(_LLAMA, mlp_matrices=2),
        "seed_oss": Dialect(qkv_bias="attention_bias", output_bias="attention_out_bias", mlp_bias="mlp_bias"),
    }
)  # fmt: skip
UNKNOWN = _LLAMA  # most new decoders are like this; what was assumed is said
HEAD_DIM_REQUIRED = frozenset({"gemma", "gemma2", "gemma3_text", "qwen3", "glm4", "cohere2", "seed_oss"})
"""Types whose config class has a head width of its own: hidden size over heads would be wrong."""
