"""Cache bytes by formula, held against shapes whose values can be worked out on paper."""

from __future__ import annotations

import pytest
import torch
from transformers import AutoConfig

from engine.costs import ModelShape


def test_smollm2_135m_adds_46080_bytes_a_token_in_fp32_and_half_of_it_in_bf16():
    shape = ModelShape(num_layers=30, num_heads=9, num_kv_heads=3, head_dim=64, vocab_size=49152)
    assert shape.kv_bytes_per_token(4) == 2 * 30 * 3 * 64 * 4 == 46_080
    assert shape.kv_bytes_per_token(2) == 23_040
    assert 8192 * shape.kv_bytes_per_token(4) == 360 * 2**20  # not 1080 MiB, which counts query heads


LLAMA_8B = {"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_size": 4096}
FALCON_7B = {"num_hidden_layers": 32, "num_attention_heads": 71, "num_key_value_heads": 1, "hidden_size": 4544}
QWEN3 = {"num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128}


@pytest.mark.parametrize(
    ("name", "settings", "expected"),
    [
        ("llama", LLAMA_8B, 131_072),
        ("gpt2", {"n_layer": 12, "n_head": 12, "n_embd": 768}, 36_864),
        ("falcon", FALCON_7B, 8_192),
        ("qwen3", QWEN3, 114_688),
        ("deepseek_v3", {"num_hidden_layers": 61, "kv_lora_rank": 512, "qk_rope_head_dim": 64}, 70_272),
    ],
    ids=["Llama-3.1-8B", "gpt2", "Falcon-7B", "Qwen3-0.6B", "DeepSeek-V3"],
)
def test_bytes_per_token_in_bf16(name, settings, expected):
    assert ModelShape.from_config(AutoConfig.for_model(name, **settings)).kv_bytes_per_token(2) == expected


def test_head_width_comes_from_the_config_where_it_is_given():
    config = AutoConfig.for_model("qwen3", hidden_size=1024, num_attention_heads=16, head_dim=128)
    assert ModelShape.from_config(config).head_dim == 128  # 1024 / 16 would be 64


def test_a_tied_embedding_counts_once():
    from engine.measure import unique_bytes

    weight = torch.zeros(10, 4)
    assert unique_bytes([weight, weight, weight[:3]]) == 10 * 4 * 4
