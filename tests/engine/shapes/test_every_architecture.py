"""Every decoder that transformers can build, against what it caches: an unmarked number is exact, or there is none.

The oracle is transformers' own cache: every tensor in it that grew between a prompt of three tokens and one of five.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, PreTrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from engine.costs import ModelShape
from engine.errors import InvalidConfig
from engine.shapes import from_config, read
from engine.shapes.cache_dialects import CACHE_DIALECTS
from engine.shapes.dialects import DIALECTS
from tests.engine.shapes.small_configs import small_config

KNOWN = {**DIALECTS, **CACHE_DIALECTS}
TEN = (
    "qwen3_next",
    "qwen3_5_text",
    "olmo_hybrid",
    "jamba",
    "kimi_linear",
    "gemma2",
    "gemma3_text",
    "gemma4_text",
    "cohere2",
    "olmo3",
    "exaone4",
    "gpt_oss",
    "llama4_text",
)
"""Types with a period: ten layers are no multiple of it, so where it ends matters."""
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {kind: (kind, {}) for kind in KNOWN} | {
    "qwen2 with windows": ("qwen2", {"use_sliding_window": True, "max_window_layers": 5}),
    "qwen3 with windows": ("qwen3", {"use_sliding_window": True, "max_window_layers": 0}),
    "smollm3 with windows": ("smollm3", {"use_sliding_window": True, "sliding_window": 16}),
    "mistral without windows": ("mistral", {"sliding_window": None}),
    "starcoder2 with windows": ("starcoder2", {"sliding_window": 16}),
    "phi3 with windows": ("phi3", {"sliding_window": 16}),
    "mixtral with windows": ("mixtral", {"sliding_window": 16}),
    "llama4_text in chunks of 16": ("llama4_text", {"attention_chunk_size": 16}),
    "llama4_text, every second layer": ("llama4_text", {"no_rope_layer_interval": 2}),
    "gpt_oss with a list": ("gpt_oss", {"layer_types": ["full_attention"] * 3 + ["sliding_attention"] * 5}),
    "qwen3_next, every second layer": ("qwen3_next", {"full_attention_interval": 2}),
    "jamba, every third layer": ("jamba", {"attn_layer_period": 3, "attn_layer_offset": 1}),
    "lfm2 with a list": ("lfm2", {"full_attn_idxs": [0, 3, 6]}),
    "gemma4_text with shared layers": ("gemma4_text", {"num_kv_shared_layers": 2}),
    "gemma4_text, keys as values": (
        "gemma4_text",
        {"attention_k_eq_v": True, "num_global_key_value_heads": 1, "global_head_dim": 32},
    ),
    "falcon, many heads": ("falcon", {"multi_query": False}),
    "gpt_bigcode, many heads": ("gpt_bigcode", {"multi_query": False}),
    "kimi_linear with a list": (
        "kimi_linear",
        {"linear_attn_config": {"full_attn_layers": [2, 8], "kda_layers": [1, 3, 4, 5, 6, 7]}},
    ),
    "gemma4_text, layers with sizes of their own": (
        "gemma4_text",
        {"per_layer_config": {5: {"head_dim": 32}, 7: {"head_dim": 32}}},
    ),
    "nemotron_h with letters": ("nemotron_h", {"hybrid_override_pattern": "M*-EM*", "num_hidden_layers": 6}),
}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.WARNING)  # transformers on settings that it would rather have otherwise
    yield
    logging.disable(logging.NOTSET)


def tensors(layer: Any) -> Iterator[torch.Tensor]:
    """Whatever a layer of a cache holds, also in lists and dicts of it."""
    for held in vars(layer).values():
        inner = held.values() if isinstance(held, dict) else held if isinstance(held, (list, tuple)) else (held,)
        yield from (one for one in inner if isinstance(one, torch.Tensor))


def cached(config: PreTrainedConfig) -> Counter[tuple[int, int | None]]:
    """What transformers caches: layers by (numbers a token, window)."""
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    caches = []
    with torch.inference_mode():
        for tokens in (3, 5):
            output = model(input_ids=torch.arange(3, 3 + tokens).unsqueeze(0), use_cache=True)
            caches.append(getattr(output, "cache", None) or output.past_key_values)
    few, more = ([sum(t.numel() for t in tensors(layer)) for layer in cache.layers] for cache in caches)
    windows = [getattr(layer, "sliding_window", None) for layer in caches[0].layers]
    grown = ((more_held - held) // 2 for held, more_held in zip(few, more, strict=True))
    return Counter((width, window) for width, window in zip(grown, windows, strict=True) if width)


def told(shape: ModelShape) -> Counter[tuple[int, int | None]]:
    """What the formula says is cached."""
    return Counter({(one.width, one.window): one.layers for one in shape.cached_layers})


@pytest.mark.parametrize("name", VARIANTS)
def test_a_known_type_caches_what_the_formula_says(name):
    kind, changes = VARIANTS[name]
    config = small_config(kind, **changes)
    shape = from_config(config.to_dict())
    assert not shape.doubts
    assert told(shape) == cached(config)


def test_transformers_repeats_falcons_grouped_keys_before_it_caches_them():
    """The one known type whose tensors are not the architecture's: two key heads, cached once per query head."""
    config = small_config("falcon", new_decoder_architecture=True, num_kv_heads=2)
    assert told(from_config(config.to_dict())) == Counter({(2 * 2 * 16, None): 8})
    assert cached(config) == Counter({(2 * 4 * 16, None): 8})


@pytest.mark.parametrize("kind", sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES))
def test_a_type_that_is_not_known_is_refused_or_doubted(kind):
    try:
        config = CONFIG_MAPPING[kind]().to_dict()
    except Exception:  # config classes refuse themselves in many ways
        pytest.skip("has no default config")
    try:
        reading = read(config)
    except InvalidConfig:
        return
    inner = next((config[name] for name in ("text_config",) if isinstance(config.get(name), dict)), config)
    assert reading.shape.doubts or inner["model_type"] in KNOWN


@pytest.mark.parametrize("kind", sorted(KNOWN))
def test_what_a_config_leaves_out_is_what_transformers_takes(kind):
    """Each field by itself: without it, the shape is that of the config as transformers fills it in, or is refused."""
    full = small_config(kind, **({"num_hidden_layers": 10} if kind in TEN else {})).to_dict()
    for name in set(read(full).essential) - {"model_type"}:
        less = {field: value for field, value in full.items() if field != name}
        try:
            mine = from_config(less)
            theirs = from_config(CONFIG_MAPPING[kind](**less).to_dict())
        except Exception:  # refused, here or there
            continue
        assert told(mine) == told(theirs), f"without {name}"
