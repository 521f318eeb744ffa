"""Model types of which only the cache is known: which layers keep what. Their weights are not counted.

Most are hybrids, or share what is cached between layers, or give some layers other widths. The tests hold every one
against the tensors that transformers caches.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from engine.shapes.dialects import Dialect


def _defaults(**values: object) -> MappingProxyType[str, object]:
    return MappingProxyType(values)


_PLAIN = Dialect(cache_only=True)
_STATES = replace(_PLAIN, states=True)
_INTERVAL = replace(_STATES, layout="interval", every=4)
_INDEXED = replace(_PLAIN, latent=True, layout="indexed", index=True, defaults=_defaults(index_head_dim=128))
_LISTED = replace(_STATES, layout="listed", list_field="attn_layer_indices")
_8_HEADS, _4_HEADS = _defaults(num_key_value_heads=8), _defaults(num_key_value_heads=4)

CACHE_DIALECTS: MappingProxyType[str, Dialect] = MappingProxyType(
    {
        # attention in some layers, a state in the others
        "qwen3_next": replace(_INTERVAL, defaults=_defaults(num_key_value_heads=2, head_dim=256)),
        "qwen3_5_text": replace(_INTERVAL, defaults=_defaults(num_key_value_heads=4, head_dim=256)),
        "qwen3_5_moe_text": replace(_INTERVAL, defaults=_defaults(num_key_value_heads=2, head_dim=256)),
        "olmo_hybrid": _INTERVAL,
        "jamba": replace(_STATES, layout="period", defaults=_8_HEADS),
        "bamba": replace(_LISTED, defaults=_8_HEADS),
        "granitemoehybrid": _LISTED,
        "falcon_h1": replace(_STATES, layout="both", defaults=_8_HEADS),
        "nemotron_h": replace(_STATES, layout="letters", defaults=_defaults(num_key_value_heads=8, head_dim=128)),
        "lfm2": replace(_STATES, layout="listed", list_field="full_attn_idxs", defaults=_8_HEADS),
        "minimax": replace(_STATES, layout="alternate states", defaults=_8_HEADS),
        "kimi_linear": replace(_STATES, latent=True, layout="kimi"),
        # layers that share, or that have widths of their own
        "gemma3n_text": replace(
            _PLAIN,
            layout="alternate",
            every=5,
            shares=True,
            defaults=_defaults(num_key_value_heads=2, head_dim=256, num_kv_shared_layers=15, sliding_window=512),
        ),
        "gemma4_text": replace(
            _PLAIN,
            layout="alternate",
            every=6,
            shares=True,
            wide_globals=True,
            aside=("global_head_dim", "num_global_key_value_heads", "attention_k_eq_v"),
            defaults=_defaults(num_key_value_heads=4, head_dim=256, sliding_window=512),
        ),
        # an index beside the cache
        "deepseek_v32": _INDEXED,
        # attention in every layer
        "glm": replace(_PLAIN, defaults=_defaults(num_key_value_heads=2, head_dim=128)),
        "glm4_moe": replace(_PLAIN, defaults=_8_HEADS),
        "glm4_moe_lite": replace(_PLAIN, latent=True),
        "ernie4_5": replace(_PLAIN, defaults=_defaults(num_key_value_heads=2, head_dim=128)),
        "ernie4_5_moe": replace(_PLAIN, defaults=_4_HEADS),
        "exaone4": replace(
            _PLAIN, layout="alternate", every=4, defaults=_defaults(num_key_value_heads=32, sliding_window=4096)
        ),
        "minimax_m2": replace(_PLAIN, defaults=_defaults(num_key_value_heads=8, head_dim=128)),
        "apertus": _PLAIN,
        "hunyuan_v1_dense": _PLAIN,
        "hunyuan_v1_moe": _PLAIN,
        "exaone": _PLAIN,
        "internlm3": replace(_PLAIN, defaults=_defaults(num_key_value_heads=2, head_dim=128)),
        "bitnet": _PLAIN,
        "flex_olmo": _PLAIN,
        "vaultgemma": replace(
            _PLAIN,
            layout="alternate",
            every=2,
            defaults=_defaults(num_key_value_heads=4, head_dim=256, sliding_window=4096),
        ),
        "ministral3": replace(_PLAIN, layout="windows", defaults=_defaults(num_key_value_heads=8, head_dim=128)),
    }
)
