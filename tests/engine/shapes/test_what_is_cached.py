"""Bytes a token adds to the cache, by hand, from configs as their authors publish them; and where doubts are due."""

from __future__ import annotations

from typing import Any

import pytest

from engine.costs import CachedLayers, Window
from engine.errors import InvalidConfig
from engine.shapes import NAMED, from_config

LLAMA = dict(NAMED["Llama 3.1 8B"].config)
QWEN3_NEXT: dict[str, Any] = {
    "model_type": "qwen3_next",
    "num_hidden_layers": 48,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "hidden_size": 2048,
    "intermediate_size": 5120,
    "vocab_size": 151_936,
    "full_attention_interval": 4,
    "linear_num_key_heads": 16,
    "linear_key_head_dim": 128,
}
GEMMA_3N: dict[str, Any] = {
    "model_type": "gemma3n_text",
    "num_hidden_layers": 35,
    "num_kv_shared_layers": 15,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "hidden_size": 2048,
    "intermediate_size": 16_384,
    "vocab_size": 262_400,
    "sliding_window": 512,
}
DEEPSEEK_32 = dict(NAMED["DeepSeek-V3"].config) | {
    "model_type": "deepseek_v32",
    "index_head_dim": 128,
    "index_n_heads": 64,
    "index_topk": 2048,
}
LLAMA_4: dict[str, Any] = LLAMA | {
    "model_type": "llama4_text",
    "num_hidden_layers": 48,
    "num_attention_heads": 40,
    "head_dim": 128,
    "hidden_size": 5120,
    "intermediate_size": 8192,
    "intermediate_size_mlp": 16_384,
    "num_local_experts": 16,
    "num_experts_per_tok": 1,
}
QWEN2 = LLAMA | {"model_type": "qwen2", "sliding_window": 4096, "max_window_layers": 20}


def without(config: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in config.items() if name not in names}


def test_a_hybrid_caches_in_its_attention_layers_and_says_what_the_others_keep():
    shape = from_config(QWEN3_NEXT)
    assert shape.kv_bytes_per_token(2) == 12 * 2 * 2 * 256 * 2 == 24_576
    assert shape.remarks == (
        "36 of 48 layers keep a state in place of keys and values; it does not grow and is not counted",
    )
    assert not shape.doubts
    assert from_config(without(QWEN3_NEXT, "full_attention_interval")).kv_bytes_per_token(2) == 24_576  # the default
    assert from_config(QWEN3_NEXT | {"full_attention_interval": 8}).kv_bytes_per_token(2) == 12_288


def test_layers_that_read_the_keys_of_others_keep_none():
    shape = from_config(GEMMA_3N)
    assert shape.kv_bytes_per_token(2) == 20 * 2 * 2 * 256 * 2 == 40_960
    assert "15 of 35 layers read the keys and values of earlier layers" in shape.remarks[0]
    # of the first 20 layers every fifth keeps all, the others 512 tokens
    assert shape.kv_bytes(2048, 2) == (4 * 2048 + 16 * 512) * 2 * 2 * 256 * 2


def test_a_sparse_index_keeps_a_key_of_its_own():
    """An index key of 128 beside a latent of 576: DeepSeek-V3's cache is 18 % less."""
    shape = from_config(DEEPSEEK_32)
    assert shape.kv_bytes_per_token(2) == 61 * (512 + 64 + 128) * 2 == 85_888
    assert from_config(without(DEEPSEEK_32, "index_head_dim")).kv_bytes_per_token(2) == 85_888


def test_llama_4_has_its_chunks_where_the_config_lists_no_layers():
    shape = from_config(LLAMA_4)
    assert shape.window == Window(size=8192, layers=36)  # every fourth of 48 sees everything
    assert from_config(LLAMA_4 | {"attention_chunk_size": None}).window is None
    assert from_config(LLAMA_4 | {"no_rope_layers": [1, 0] * 24}).window == Window(size=8192, layers=24)


def test_qwen2_has_windows_only_where_they_are_switched_on():
    assert from_config(QWEN2).window is None
    assert from_config(QWEN2 | {"layer_types": ["sliding_attention"] * 32}).window is None
    assert from_config(QWEN2 | {"use_sliding_window": True}).window == Window(size=4096, layers=12)


def test_gemma_4_has_wider_heads_in_the_layers_that_see_everything():
    config = GEMMA_3N | {"model_type": "gemma4_text", "num_hidden_layers": 30, "num_kv_shared_layers": 0}
    assert from_config(config).cached_layers == (
        CachedLayers(layers=25, heads=2, key=256, value=256, window=512),
        CachedLayers(layers=5, heads=2, key=512, value=512),
    )
    fewer = from_config(config | {"attention_k_eq_v": True, "num_global_key_value_heads": 1, "global_head_dim": 128})
    assert fewer.kv_elements_per_token == 25 * 2 * 2 * 256 + 5 * 1 * 2 * 128


def test_mistral_without_a_word_on_windows_has_its_types_own():
    shape = from_config(without(dict(NAMED["Mistral 7B v0.1"].config), "sliding_window"))
    assert shape.window == Window(size=4096, layers=32)
    assert any("sliding_window is not in the config: 4096" in said for said in shape.assumed)
    assert (
        from_config(dict(NAMED["Mistral 7B v0.1"].config) | {"sliding_window": None}).window is None
    )  # null says none


def test_only_the_cache_is_told_of_a_type_whose_weights_are_not_known():
    shape = from_config(QWEN3_NEXT)
    assert not shape.knows_weights
    with pytest.raises(InvalidConfig, match="Only the cache of this architecture is known here"):
        assert shape.parameters


SHAPING = {
    "num_kv_shared_layers": 4,
    "cross_layer_attention_sharing": 2,
    "full_attention_interval": 4,
    "attn_layer_period": 8,
    "attn_layer_offset": 4,
    "layers_that_cache": 16,
    "sliding_window": 4096,
    "hybrid_override_pattern": "M*" * 16,
    "kv_compression_ratio": 4,
    "num_key_value_heads_per_layer": [8] * 32,
    "index_head_dim": 128,
    "attn_layer_indices": [3, 7, 11],
    "useSlidingAttention": True,
    "v_head_dim": 64,
    "linear_attn_config": {"full_attn_layers": [4, 8]},
    "block_list": [1, 2, 3],
    "swa_head_dim": 64,
    # by their shape alone
    "plan": ["a", "b"] * 16,
    "keepers": [0, 5, 9],
    "recipe": "ab" * 16,
    "extra": {"num_kv_heads": 2},
}


@pytest.mark.parametrize("name", SHAPING)
def test_a_field_that_may_say_what_is_cached_is_doubted_in_a_known_type_and_refused_in_another(name):
    assert name in "".join(from_config(LLAMA | {name: SHAPING[name]}).doubts)
    with pytest.raises(InvalidConfig, match=name):
        from_config(LLAMA | {"model_type": "brandnew", name: SHAPING[name]})


HARMLESS = {
    "hidden_act": "silu",
    "rope_theta": 500_000.0,
    "rope_scaling": {"rope_type": "llama3", "factor": 8.0},
    "rms_norm_eps": 1e-5,
    "attention_dropout": 0.1,
    "initializer_range": 0.02,
    "bos_token_id": 1,
    "use_cache": True,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.43.0",
    "pretraining_tp": 2,
    "attn_implementation": "sdpa",
    "quantization_config": {"bits": 4, "group_size": 128},
    "auto_map": {"AutoModel": "m.M"},
    "head_dim": 128,
    "num_kv_shared_layers": 0,
    "sliding_window": None,
    "use_sliding_window": False,
    "layer_types": None,
    "eos_token_id": [1, 2, 3],
    "cache_implementation": "hybrid",
    "offset_alibi": 100,
    "scale_attn_by_inverse_layer_idx": True,
    "attn_output_gate": True,
    "unsloth_version": "2025.1",
    "use_flash_attn": True,
    "attn_logit_softcapping": 50.0,
}


@pytest.mark.parametrize("name", HARMLESS)
def test_a_field_about_something_else_raises_no_doubt(name):
    config = LLAMA | {name: HARMLESS[name]}
    assert from_config(config) == NAMED["Llama 3.1 8B"].shape


def test_a_field_around_the_text_part_counts_as_well():
    config = {
        "model_type": "seer",
        "text_config": LLAMA,
        "vision_config": {"num_hidden_layers": 4},
        "image_token_id": 3,
    }
    assert from_config(config) == NAMED["Llama 3.1 8B"].shape
    assert "kv_cache_stride: not known" in from_config(config | {"kv_cache_stride": 2}).doubts[0]


def test_windows_by_letters_are_repeated():
    config = LLAMA | {"model_type": "exaone4", "sliding_window": 4096, "sliding_window_pattern": "LLLG"}
    assert from_config(config).cached_layers == (
        CachedLayers(layers=24, heads=8, key=128, value=128, window=4096),
        CachedLayers(layers=8, heads=8, key=128, value=128),
    )


def test_windows_in_the_list_of_a_type_that_has_none_are_doubted():
    shape = from_config(LLAMA | {"layer_types": ["sliding_attention"] * 32, "sliding_window": 64})
    assert "'sliding_attention', which this type is not known to have" in shape.doubts[0]


def test_two_names_for_one_size_that_disagree_are_refused():
    with pytest.raises(InvalidConfig, match="num_hidden_layers 32 and n_layer 16: two values for one thing"):
        from_config(LLAMA | {"n_layer": 16})
    assert from_config(LLAMA | {"n_layer": 32}) == NAMED["Llama 3.1 8B"].shape
