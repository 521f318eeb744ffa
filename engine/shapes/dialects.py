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
    layout         the rule of `layer_kinds.RULES` for configs that do not list the kinds of their layers; `every` and
                   `list_field` are what a rule needs
    cache_only     only what is cached is known of it: not its weights, not its operations
    latent         keys and values are cached as one latent, and its config must say how wide
    index          layers with a sparse index keep one more key a token for it
    shares         the last layers may read the keys and values of earlier ones
    wide_globals   layers with full attention have heads of another width
    states         some layers have a state in place of a cache
    aside          fields that it has and that change nothing that is cached
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
    layout: str = "full"
    every: int = 0
    list_field: str = ""
    cache_only: bool = False
    latent: bool = False
    index: bool = False
    shares: bool = False
    wide_globals: bool = False
    states: bool = False
    aside: tuple[str, ...] = ()
    always_experts: bool = False
    biased_experts: bool = False
    router_bias: bool = False
    defaults: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def has_windows(self) -> bool:
        """Whether its attention knows the config's window."""
        return self.layout in ("windows", "alternate", "after", "without rotation")


_BARE = Dialect(qkv_bias="attention_bias", output_bias="attention_bias")
_LLAMA = replace(_BARE, mlp_bias="mlp_bias")
_GPT2 = Dialect(
    tied=True, mlp_matrices=2, qkv_bias=True, output_bias=True, mlp_bias=True, norm_vectors=2,
    positions=True, inner_factor=4,
)  # fmt: skip
_GEMMA = replace(_BARE, tied=True)
_QWEN2 = Dialect(qkv_bias=True, layout="after")
_QWEN3 = replace(_BARE, qk_norm="head", layout="after")
_EXPERTS = Dialect(always_experts=True)


def _defaults(**values: object) -> MappingProxyType[str, object]:
    return MappingProxyType(values)


DIALECTS: MappingProxyType[str, Dialect] = MappingProxyType(
    {
        "llama": _LLAMA,
        "mistral": Dialect(layout="windows", defaults=_defaults(num_key_value_heads=8, sliding_window=4096)),
        "ministral": Dialect(layout="windows", defaults=_defaults(num_key_value_heads=8, sliding_window=4096)),
        "mixtral": replace(_EXPERTS, layout="windows", defaults=_defaults(num_key_value_heads=8)),
        "qwen2": _QWEN2,
        "qwen2_moe": replace(_QWEN2, qkv_bias="qkv_bias", defaults=_defaults(qkv_bias=True)),
        "qwen3": _QWEN3,
        "qwen3_moe": _QWEN3,
        "phi": Dialect(
            mlp_matrices=2, qkv_bias=True, output_bias=True, mlp_bias=True, head_bias=True, norms_per_layer=1,
            norm_vectors=2, qk_norm="head", qk_norm_field="qk_layernorm", qk_norm_vectors=2,
        ),
        "phi3": Dialect(layout="windows"),
        "phimoe": replace(_BARE, always_experts=True, head_bias="lm_head_bias", norm_vectors=2, layout="windows"),
        "gemma": _GEMMA,
        "gemma2": replace(
            _GEMMA, norms_per_layer=4, layout="alternate", every=2, defaults=_defaults(sliding_window=4096)
        ),
        "gemma3_text": replace(
            _GEMMA, norms_per_layer=4, qk_norm="head", layout="alternate", every=6,
            defaults=_defaults(
                num_attention_heads=8, num_key_value_heads=4, head_dim=256, vocab_size=262_208, sliding_window=4096
            ),
        ),
        "gpt2": _GPT2,
        "gpt_bigcode": _GPT2,
        "gptj": Dialect(
            mlp_matrices=2, mlp_bias=True, head_bias=True, norms_per_layer=1, norm_vectors=2, inner_factor=4
        ),
        "gpt_neo": replace(_GPT2, qkv_bias=False, aside=("attention_types", "attention_layers", "window_size")),
        "gpt_neox": replace(
            _BARE, mlp_matrices=2, mlp_bias=True, norm_vectors=2,
            defaults=_defaults(attention_bias=True),
        ),
        "gpt_oss": replace(
            _BARE, sinks=True, layout="alternate", every=2, always_experts=True,
            biased_experts=True, router_bias=True,
            defaults=_defaults(attention_bias=True, head_dim=64, num_key_value_heads=8, sliding_window=128),
        ),
        "opt": replace(
            _GPT2, qkv_bias="enable_bias", output_bias="enable_bias", mlp_bias="enable_bias", extra_positions=2,
            inner_factor=0, defaults=_defaults(enable_bias=True, do_layer_norm_before=True),
        ),
        "falcon": Dialect(
            tied=True, mlp_matrices=2, qkv_bias="bias", output_bias="bias", mlp_bias="bias", norm_vectors=2,
            inner_factor=4,
        ),
        "bloom": replace(_GPT2, positions=False, embedding_norm=True),
        "olmo": replace(_BARE, norm_vectors=0),
        "olmo2": replace(_BARE, qk_norm="width"),
        "olmo3": replace(
            _BARE, qk_norm="width", layout="alternate", every=4, defaults=_defaults(sliding_window=4096)
        ),
        "olmoe": replace(_BARE, always_experts=True, qk_norm="width"),
        "smollm3": replace(_LLAMA, tied=True, layout="without rotation"),
        "granite": _LLAMA,
        "granitemoe": replace(_BARE, always_experts=True),
        "stablelm": Dialect(
            qkv_bias="use_qkv_bias", norm_vectors=2, qk_norm="each head", qk_norm_field="qk_layernorm"
        ),
        "cohere": replace(
            _BARE, tied=True, norms_per_layer=1, qk_norm="each head", qk_norm_field="use_qk_norm"
        ),
        "cohere2": replace(
            _BARE, tied=True, norms_per_layer=1, layout="alternate", every=4, defaults=_defaults(sliding_window=4096)
        ),
        "starcoder2": Dialect(
            tied=True, mlp_matrices=2, qkv_bias="use_bias", output_bias="use_bias", mlp_bias="use_bias",
            norm_vectors=2, layout="windows", defaults=_defaults(use_bias=True, num_key_value_heads=2),
        ),
        "llama4_text": replace(_BARE, always_experts=True, layout="chunks",
            defaults=_defaults(attention_chunk_size=8192, num_key_value_heads=8, head_dim=128)),
        "deepseek_v2": replace(_BARE, latent=True),
        "deepseek_v3": replace(_BARE, latent=True, router_bias=True),
        "glm4": Dialect(
            qkv_bias="attention_bias", norms_per_layer=4, defaults=_defaults(num_key_value_heads=2, head_dim=128)
        ),
        "nemotron": replace(_LLAMA, mlp_matrices=2, norm_vectors=2),
        "helium": replace(_LLAMA, output_bias=False, defaults=_defaults(head_dim=128)),
        "arcee": replace(_LLAMA, mlp_matrices=2),
        "seed_oss": Dialect(qkv_bias="attention_bias", output_bias="attention_out_bias", mlp_bias="mlp_bias"),
    }
)  # fmt: skip
UNKNOWN = _LLAMA  # most new decoders are like this; what was assumed is said
HEAD_DIM_REQUIRED = frozenset({"gemma", "gemma2", "gemma3_text", "qwen3", "glm4", "cohere2", "seed_oss"})
"""Types whose config class has a head width of its own: hidden size over heads would be wrong."""
