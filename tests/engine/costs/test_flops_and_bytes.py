"""Operations and bytes of a step, each value worked out from the shape."""

from __future__ import annotations

import pytest

from engine.costs.bytes import element_bytes, expected_experts, step_bytes, streamed_parameters, weight_bytes
from engine.costs.flops import decode_flops, flops_per_pair, prefill_flops, prompt_pairs, visible_keys
from engine.shapes import NAMED

LLAMA, SMOL, GPT2 = (NAMED[name].shape for name in ("Llama 3.1 8B", "SmolLM2-135M", "GPT-2"))


@pytest.mark.parametrize(
    ("shape", "keys", "flops"),
    [(LLAMA, 4096, 17_157_332_992), (SMOL, 100, 275_942_016), (GPT2, 1024, 285_055_488)],
    ids=["Llama 3.1 8B", "SmolLM2-135M", "GPT-2"],
)
def test_a_decode_step_multiplies_each_weight_once_and_meets_every_key(shape, keys, flops):
    pairs = 4 * shape.num_layers * shape.num_heads * shape.head_dim * keys
    assert decode_flops(shape, keys) == 2 * shape.parameters.matmul + pairs == flops
    assert decode_flops(shape, keys, batch=3) == 3 * flops


@pytest.mark.parametrize(
    ("shape", "prompt", "last_only", "flops"),
    [
        (LLAMA, 2000, False, 31_068_798_976_000),
        (LLAMA, 2000, True, 28_968_503_345_152),
        (GPT2, 1024, False, 272_588_341_248),
        (SMOL, 100, False, 27_252_057_600),
    ],
)
def test_a_prefill_meets_half_a_square_of_pairs(shape, prompt, last_only, flops):
    assert prefill_flops(shape, prompt, last_logits_only=last_only) == flops


def test_a_kernel_that_computes_the_masked_half_meets_the_square():
    more = prefill_flops(SMOL, 100, causal=False) - prefill_flops(SMOL, 100)
    assert more == 4 * 30 * 9 * 64 * (100 * 100 - 100 * 101 // 2)


def test_one_token_costs_the_same_as_a_prompt_and_as_a_step():
    assert prefill_flops(LLAMA, 1) == decode_flops(LLAMA, 1)


def test_what_the_cache_holds_already_is_not_run_again():
    rest = prefill_flops(LLAMA, 600, cached=512, last_logits_only=True)
    assert rest + prefill_flops(LLAMA, 512, last_logits_only=True) == (
        prefill_flops(LLAMA, 600, last_logits_only=True) + 2 * LLAMA.parameters.head  # the head runs once more
    )
    assert prefill_flops(LLAMA, 600, cached=599) == decode_flops(LLAMA, 600)


def test_a_windowed_layer_shows_its_window_only():
    mistral = NAMED["Mistral 7B v0.1"].shape
    assert visible_keys(mistral, 10_000) == 32 * 4096
    assert prompt_pairs(mistral, 5000) == 32 * sum(min(i, 4096) for i in range(1, 5001))
    gemma = NAMED["Gemma 2 2B"].shape
    assert visible_keys(gemma, 10_000) == 13 * 10_000 + 13 * 4096


def test_latent_attention_costs_more_per_pair_in_the_compressed_space():
    v3 = NAMED["DeepSeek-V3"].shape
    assert flops_per_pair(v3) == 2 * 128 * (2 * 512 + 64)
    assert flops_per_pair(v3, absorbed=False) == 2 * 128 * (128 + 64 + 128)


@pytest.mark.parametrize(
    ("bits", "group", "scale", "zero", "expected"),
    [(8, 32, 16, 0, 1.0625), (4, 32, 16, 0, 0.5625), (4, 64, 16, 16, 0.5625)],
)
def test_a_quantised_number_pays_its_share_of_scale_and_zero(bits, group, scale, zero, expected):
    assert element_bytes(bits, group, scale_bits=scale, zero_bits=zero) == expected


@pytest.mark.parametrize(
    ("shape", "batch", "cached", "size", "moved"),
    [
        (LLAMA, 1, 4096, 2, 15_546_851_328),
        (LLAMA, 32, 4096, 2, 32_193_912_832),
        (SMOL, 1, 100, 4, 542_714_112),
        (GPT2, 1, 1024, 4, 570_184_704),
    ],
)
def test_a_step_reads_weights_once_and_every_cache_and_writes_a_token_each(shape, batch, cached, size, moved):
    assert step_bytes(shape, cached, batch=batch, weight_dtype_bytes=size, kv_dtype_bytes=size) == moved


def test_weights_to_hold_are_all_of_them():
    assert weight_bytes(LLAMA, 2) == 16_060_522_496


@pytest.mark.parametrize(
    ("count", "active", "tokens", "distinct"), [(256, 8, 1, 8.0), (256, 8, 32, 163.314), (8, 2, 4, 5.46875)]
)
def test_experts_met_by_some_tokens_if_all_are_equally_likely(count, active, tokens, distinct):
    assert expected_experts(count, active, tokens) == pytest.approx(distinct, abs=5e-4)


def test_a_mixture_streams_more_weights_the_more_tokens_share_a_step():
    mixtral = NAMED["Mixtral 8x7B"].shape
    parameters = mixtral.parameters
    assert streamed_parameters(mixtral) == parameters.matmul
    everything = parameters.total - parameters.embedding
    assert streamed_parameters(mixtral, tokens=1000) == pytest.approx(everything)
    assert streamed_parameters(LLAMA, tokens=1000) == LLAMA.parameters.matmul
