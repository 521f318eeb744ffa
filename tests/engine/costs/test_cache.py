"""Cache bytes by formula, held against shapes whose values can be worked out on paper."""

from __future__ import annotations

import pytest

from engine.costs.bytes import PRECISIONS
from engine.shapes import NAMED

BF16, FP32 = 2, 4


def test_smollm2_135m_adds_46080_bytes_a_token_in_fp32_and_half_of_it_in_bf16():
    shape = NAMED["SmolLM2-135M"].shape
    assert shape.kv_bytes_per_token(FP32) == 2 * 30 * 3 * 64 * 4 == 46_080
    assert shape.kv_bytes_per_token(BF16) == 23_040
    assert shape.kv_bytes(8192, FP32) == 360 * 2**20  # not 1080 MiB, which counts query heads


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Llama 3.1 8B", 131_072),  # grouped queries
        ("Llama 3.1 70B", 327_680),
        ("GPT-3 175B", 4_718_592),  # a key head per query head
        ("Falcon 7B", 8_192),  # one key head for all
        ("SmolLM2-135M", 23_040),
        ("Qwen3 0.6B", 114_688),
        ("DeepSeek-V3", 70_272),  # one latent instead of keys and values
        ("DeepSeek-V2", 69_120),
        ("DeepSeek-V2-Lite", 31_104),
    ],
)
def test_bytes_per_token_in_bf16(name, expected):
    assert NAMED[name].shape.kv_bytes_per_token(BF16) == expected


def test_gpt2_adds_73728_bytes_a_token_in_fp32():
    assert NAMED["GPT-2"].shape.kv_bytes_per_token(FP32) == 73_728


@pytest.mark.parametrize(
    ("name", "seq_len", "expected"),
    [
        ("Mistral 7B v0.1", 32_768, 2 * 8 * 128 * 2 * 32 * 4096),  # all layers keep their window
        ("Gemma 2 2B", 8_192, 2 * 4 * 256 * 2 * 13 * (8192 + 4096)),  # every other layer
        ("Gemma 3 1B", 32_768, 2 * 1 * 256 * 2 * (4 * 32_768 + 22 * 512)),  # all but four
    ],
)
def test_a_windowed_layer_keeps_no_more_than_its_window(name, seq_len, expected):
    assert NAMED[name].shape.kv_bytes(seq_len, BF16) == expected


def test_the_three_windowed_caches_are_512_624_and_139_mib():
    sizes = [NAMED[n].shape.kv_bytes(s, BF16) for n, s in (("Mistral 7B v0.1", 32_768), ("Gemma 2 2B", 8192))]
    assert [*sizes, NAMED["Gemma 3 1B"].shape.kv_bytes(32_768, BF16)] == [536_870_912, 654_311_424, 145_752_064]


def test_a_window_that_is_not_full_saves_nothing():
    shape = NAMED["Mistral 7B v0.1"].shape
    assert shape.kv_bytes(4096, BF16) == 4096 * shape.kv_bytes_per_token(BF16)


@pytest.mark.parametrize(
    ("precision", "per_token"), [("q8_0", 69_632), ("q4_0", 36_864), ("int4, groups of 64", 36_864)]
)
def test_a_quantised_cache_pays_for_its_scales(precision, per_token):
    assert NAMED["Llama 3.1 8B"].shape.kv_bytes_per_token(PRECISIONS[precision]) == per_token
