"""Parameters by formula, held against totals that anybody can work out from the sizes or find published."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.costs import Experts, Latent, ModelShape
from engine.shapes import NAMED

TOTALS = {
    "Llama 3.1 8B": 8_030_261_248,
    "Llama 3.1 70B": 70_553_706_496,
    "Llama 3.1 405B": 405_853_388_800,
    "Llama 3.2 1B": 1_235_814_400,  # its embedding counts once
    "Llama 2 13B": 13_015_864_320,
    "SmolLM2-135M": 134_515_008,
    "Qwen2.5 0.5B": 494_032_768,  # biases on q, k, v
    "Qwen3 0.6B": 596_049_920,  # norms on q and k; heads wider than hidden size over heads
    "Qwen3 8B": 8_190_735_360,
    "Gemma 2 2B": 2_614_341_888,
    "Gemma 3 1B": 999_885_952,
    "Falcon 7B": 6_921_720_704,
    "GPT-2": 124_439_808,
    "GPT-2 medium": 354_823_168,
    "GPT-2 XL": 1_557_611_200,
    "GPT-3 175B": 174_604_259_328,
}
MIXTURES = {
    "Mixtral 8x7B": (46_702_792_704, 12_879_925_248),
    "Qwen3 30B-A3B": (30_532_122_624, 3_353_032_704),
    "DeepSeek-V3": (671_026_419_200, 37_552_297_472),  # 14,848 of them are the router's biases
    "DeepSeek-V2-Lite": (15_706_484_224, 2_661_150_208),
}


@pytest.mark.parametrize(("name", "total"), TOTALS.items(), ids=list(TOTALS))
def test_a_dense_model_has_as_many_parameters_as_published(name, total):
    parameters = NAMED[name].shape.parameters
    assert parameters.total == parameters.active == total


@pytest.mark.parametrize(("name", "sizes"), MIXTURES.items(), ids=list(MIXTURES))
def test_a_mixture_has_a_size_to_hold_and_a_size_a_token_meets(name, sizes):
    parameters = NAMED[name].shape.parameters
    assert (parameters.total, parameters.active) == sizes


def test_a_gpt2_layer_has_12_d_squared_and_13_d():
    d, layers = 768, 12
    assert NAMED["GPT-2"].shape.parameters.total == 50_257 * d + 1024 * d + layers * (12 * d * d + 13 * d) + 2 * d


@pytest.mark.parametrize(
    ("name", "per_layer"),
    [("DeepSeek-V3", 187_107_328), ("DeepSeek-V2", 149_227_520), ("DeepSeek-V2-Lite", 13_763_072)],
)
def test_latent_attention_of_one_layer(name, per_layer):
    assert NAMED[name].shape.parameters.attention_per_layer == per_layer


def test_a_mixture_without_norms_and_router_is_what_the_textbook_exercise_counts():
    shape = ModelShape(
        num_layers=64, num_heads=32, num_kv_heads=8, head_dim=256, hidden_size=4096, intermediate_size=0,
        vocab_size=32_128, tied=True, norm_vectors=0,
        experts=Experts(count=16, active=2, width=16_384, layers=64, router=False),
    )  # fmt: skip
    attention = 2 * 256 * (32 + 8)
    assert shape.parameters.total == 64 * 4096 * (3 * 16 * 16_384 + attention) + 4096 * 32_128 == 211_658_735_616
    assert shape.parameters.active == 31_270_109_184


@pytest.mark.parametrize(
    ("name", "multiplied"),
    [
        ("Llama 3.1 8B", 8_030_261_248 - 128_256 * 4096),  # a row of the input embedding is looked up
        ("SmolLM2-135M", 134_515_008),  # tied: the same matrix is the head
        ("GPT-2", 124_439_808 - 1024 * 768),  # so is a row of the position table
    ],
)
def test_what_is_only_looked_up_is_not_multiplied(name, multiplied):
    assert NAMED[name].shape.parameters.matmul == multiplied


def test_what_is_multiplied_is_matrices_to_within_a_hundredth_of_a_percent():
    for name in ("Llama 3.1 8B", "Mixtral 8x7B", "DeepSeek-V3"):
        parameters = NAMED[name].shape.parameters
        assert 0 < parameters.matmul - parameters.matrices < 1e-4 * parameters.matmul


def test_untying_adds_one_embedding():
    tied = ModelShape(
        num_layers=2, num_heads=4, num_kv_heads=2, head_dim=8, hidden_size=32, intermediate_size=48, vocab_size=100,
        tied=True,
    )  # fmt: skip
    assert replace(tied, tied=False).parameters.total == tied.parameters.total + 100 * 32


def test_a_latent_without_compressed_queries_has_one_query_matrix():
    latent = Latent(q_rank=0, kv_rank=4, nope=3, rope=2, value=3)
    shape = ModelShape(
        num_layers=1, num_heads=2, num_kv_heads=2, head_dim=5, hidden_size=8, intermediate_size=0, vocab_size=1,
        latent=latent,
    )  # fmt: skip
    assert shape.parameters.attention_per_layer == 8 * 2 * 5 + 8 * (4 + 2) + 4 + 4 * 2 * (3 + 3) + 2 * 3 * 8


def test_a_size_that_cannot_be_is_refused():
    with pytest.raises(ValueError, match="num_layers must be at least 1, got 0"):
        ModelShape(
            num_layers=0, num_heads=1, num_kv_heads=1, head_dim=1, hidden_size=1, intermediate_size=1, vocab_size=1
        )
