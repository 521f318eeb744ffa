"""Bounds of a step's time. The 30B model on sixteen TPU v5e is a textbook's worked example."""

from __future__ import annotations

import math

import pytest

from engine.costs.step_time import (
    compute_bound_s,
    critical_batch,
    critical_batch_of_experts,
    critical_batch_of_matrix,
    general_s,
    memory_bound_context,
    memory_bound_s,
    ridge,
    roofline_s,
    throughput,
)

V5E = {"bandwidth": 16 * 8.2e11, "peak": 16 * 1.97e14}
QUIZ = {"kv_bytes": 819.2e6, "weights": 30e9}  # 8,192 tokens of 100 kB; weights of one byte
H100 = {"bandwidth": 3.35e12, "peak": 989.4e12}
LLAMA_8B = {"kv_bytes": 2048 * 131_072, "weights": 16_060_522_496, "parameters": 8_030_261_248}


@pytest.mark.parametrize(
    ("batch", "kv_bytes", "weights", "bandwidth", "seconds"),
    [
        (4, 819.2e6, 30e9, 16 * 8.2e11, 0.002536341),
        (1, 0, 140e9, 3e12, 0.046666667),  # 70B in two bytes over 3 TB/s: 47 ms
        (1, 8192 * 819_200, 26_031_728_640, 8 * 8.2e11, 0.004991252),
    ],
)
def test_nothing_is_faster_than_reading_what_must_be_read(batch, kv_bytes, weights, bandwidth, seconds):
    found = memory_bound_s(batch=batch, kv_bytes=kv_bytes, weights=weights, bandwidth=bandwidth)
    assert found == pytest.approx(seconds, rel=1e-6)


def test_attention_waits_for_memory_and_the_rest_for_whichever_is_slower():
    assert general_s(batch=256, parameters=30e9, **QUIZ, **V5E) == pytest.approx(0.020857487, rel=1e-6)
    slower = {"bandwidth": 16 * 8.1e11, "peak": 16 * 1.97e14}
    assert general_s(batch=256, parameters=30e9, **QUIZ, **slower) == pytest.approx(0.021054825, rel=1e-6)
    assert general_s(batch=64, **LLAMA_8B, **H100) == pytest.approx(0.009922505, rel=1e-6)


def test_the_strict_bound_is_the_longer_of_the_two():
    moved = 256 * 819.2e6 + 30e9
    assert roofline_s(flops=2 * 256 * 30e9, moved=moved, **V5E) == pytest.approx(0.018270976, rel=1e-6)
    assert roofline_s(flops=2 * 4 * 30e9, moved=4 * 819.2e6 + 30e9, **V5E) == pytest.approx(0.002536341, rel=1e-6)
    assert compute_bound_s(flops=2 * 70e9, peak=989.4e12) == pytest.approx(0.000141499899, rel=1e-6)


def test_the_general_bound_is_never_below_the_strict_one():
    for batch in (1, 64, 256, 1024):
        flops, moved = 2 * batch * 30e9, batch * QUIZ["kv_bytes"] + QUIZ["weights"]
        strict = roofline_s(flops=flops, moved=moved, **V5E)
        assert general_s(batch=batch, parameters=30e9, **QUIZ, **V5E) > strict * (1 - 1e-12)


@pytest.mark.parametrize(
    ("peak", "bandwidth", "weight_bytes", "tokens"),
    [(1.97e14, 8.2e11, 2, 240.244), (1.97e14, 8.2e11, 1, 120.122), (989.4e12, 3.35e12, 2, 295.343)],
    ids=["v5e bf16", "v5e int8 weights", "H100 bf16"],
)
def test_the_critical_batch_is_where_a_weight_is_used_as_long_as_it_is_read(peak, bandwidth, weight_bytes, tokens):
    assert critical_batch(peak, bandwidth, weight_bytes) == pytest.approx(tokens, abs=5e-4)
    assert critical_batch(peak, bandwidth, 2) == ridge(peak, bandwidth)


def test_a_finite_matrix_needs_a_larger_batch_and_a_small_one_never_gets_there():
    assert critical_batch_of_matrix(989.4e12, 3.35e12, 8192, 28_672) == pytest.approx(309.7, abs=0.05)
    assert critical_batch_of_matrix(989.4e12, 3.35e12, 256, 256) == math.inf


def test_a_mixture_of_16_with_2_active_needs_eight_times_the_batch():
    assert critical_batch_of_experts(240, 16, 2) == 1920


@pytest.mark.parametrize(
    ("parameters", "kv", "bandwidth", "peak", "attention", "tokens"),
    [
        (30e9, 100e3, 16 * 8.2e11, 16 * 1.97e14, 0, 2497.46),
        (70.553706496e9, 327_680, 3.35e12, 989.4e12, 0, 1458.05),
        (8.030261248e9, 131_072, 3.35e12, 989.4e12, 0, 414.88),
        (8.030261248e9, 131_072, 3.35e12, 989.4e12, 4 * 32 * 32 * 128, 420.58),
        (70.553706496e9, 327_680, 3.35e12, 989.4e12, 4 * 80 * 64 * 128, 1498.65),
    ],
)
def test_above_some_context_no_batch_makes_a_step_wait_for_arithmetic(
    parameters, kv, bandwidth, peak, attention, tokens
):
    found = memory_bound_context(
        parameters=parameters, kv_bytes_per_token=kv, bandwidth=bandwidth, peak=peak, attention_flops=attention
    )
    assert found == pytest.approx(tokens, abs=0.01)


def test_there_is_no_such_context_where_attention_itself_waits_for_arithmetic():
    latent = {"kv_bytes_per_token": 70_272, "attention_flops": 61 * 2 * 128 * 1088}
    assert memory_bound_context(parameters=37e9, bandwidth=3.35e12, peak=500e12, **latent) == math.inf


@pytest.mark.parametrize(
    ("batch", "each", "all_of_them"), [(1, 205.16, 205.16), (64, 100.78, 6450.0), (512, 20.27, 10_377.5)]
)
def test_a_batch_makes_each_slower_and_all_together_faster(batch, each, all_of_them):
    rates = throughput(batch, general_s(batch=batch, **LLAMA_8B, **H100))
    assert rates.per_request == pytest.approx(each, abs=0.005)
    assert rates.total == pytest.approx(all_of_them, abs=0.05)
