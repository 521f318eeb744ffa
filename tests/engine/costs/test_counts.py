"""Positions, pairs, traffic, blocks: whole numbers that a loop or a drawing confirms."""

from __future__ import annotations

import pytest

from engine.costs.attention_traffic import (
    attention_intensity,
    input_output_bytes,
    latent_intensity,
    linear_intensity,
    naive_bytes,
    score_bytes,
    square_share,
    tiled_bytes,
)
from engine.costs.paging import paged, power_of_two_slots, reserved_waste, sessions_that_fit
from engine.costs.positions import Pairs, attention_pairs, cached_positions, uncached_positions


@pytest.mark.parametrize(
    ("prompt", "new", "uncached", "cached"),
    [
        (1, 100, 5050, 100),
        (1, 4096, 8_390_656, 4096),
        (2000, 500, 1_124_750, 2499),
        (4, 200, 20_700, 203),
        (7, 0, 0, 0),
    ],
)
def test_positions_with_and_without_a_cache(prompt, new, uncached, cached):
    assert uncached_positions(prompt, new) == uncached == sum(prompt + t for t in range(new))
    assert cached_positions(prompt, new) == cached


@pytest.mark.parametrize(
    ("prompt", "new", "pairs"),
    [
        (2000, 500, Pairs(2_540_541_750, 1_270_833_250, 5_122_750, 3_123_750)),
        (1, 100, Pairs(338_350, 171_700, 5050, 5050)),
        (4, 200, Pairs(2_809_100, 1_414_900, 20_712, 20_706)),
        (5, 0, Pairs(0, 0, 0, 0)),
    ],
)
def test_query_key_pairs_with_and_without_a_cache(prompt, new, pairs):
    assert attention_pairs(prompt, new) == pairs
    assert pairs.uncached_square == sum((prompt + t) ** 2 for t in range(new))
    assert pairs.uncached_causal == sum((prompt + t) * (prompt + t + 1) // 2 for t in range(new))


def test_a_linear_layer_does_two_operations_per_weight_and_token():
    assert linear_intensity(1, 4096, 4096) == pytest.approx(0.999512, abs=1e-6)
    assert linear_intensity(240, 8192, 28_672) == pytest.approx(231.288, abs=1e-3)
    assert linear_intensity(1, 10**9, 10**9) == pytest.approx(1.0)
    assert linear_intensity(1, 10**9, 10**9, weight_dtype_bytes=0.5) == pytest.approx(4.0)


def test_attention_does_more_per_byte_with_more_queries_per_key():
    assert attention_intensity(4096, 1) == pytest.approx(0.999756, abs=1e-6)
    assert attention_intensity(8192, 1, group=8) == pytest.approx(7.992195, abs=1e-6)
    assert attention_intensity(4096, 4096) == 2048.0  # a prefill
    assert attention_intensity(10**9, 1, kv_dtype_bytes=1) == pytest.approx(2.0)
    assert latent_intensity(10**9, 1, num_heads=128, kv_rank=512, rope=64) == pytest.approx(241.7778, abs=1e-3)


@pytest.mark.parametrize(("length", "moved"), [(4096, 134_217_728), (1024, 8_388_608), (32_768, 8_589_934_592)])
def test_unfused_attention_moves_its_square_four_times(length, moved):
    assert score_bytes(length) == moved == 4 * length**2 * 2


def test_tiles_move_inputs_and_outputs_and_keys_again_for_every_tile_of_queries():
    assert input_output_bytes(4096, 128) == 4_194_304
    assert naive_bytes(4096, 128) == 134_217_728 + 4_194_304
    assert (
        square_share(4096, 128)
        == pytest.approx(0.969697, abs=1e-6)
        == pytest.approx(134_217_728 / naive_bytes(4096, 128))
    )
    assert tiled_bytes(4096, 128, query_rows=4096) == input_output_bytes(4096, 128)
    assert tiled_bytes(4096, 128, query_rows=128) == 2 * 4096 * 128 * (2 + 2 * 32)


@pytest.mark.parametrize(("seq_len", "blocks", "wasted"), [(100, 7, 12), (2000, 125, 0), (4097, 257, 15), (0, 0, 0)])
def test_only_the_last_block_wastes(seq_len, blocks, wasted):
    found = paged(seq_len)
    assert (found.blocks, found.wasted) == (blocks, wasted)
    assert found.utilisation == (seq_len / (blocks * 16) if blocks else 1.0)


def test_other_ways_to_hand_out_slots_waste_more():
    assert [power_of_two_slots(n) for n in (0, 1, 2, 3, 100, 128, 129)] == [0, 1, 2, 4, 128, 128, 256]
    assert reserved_waste(500, 2048) == 1 - 500 / 2048


@pytest.mark.parametrize(
    ("memory", "usable", "weights", "seq_len", "kv", "sessions"),
    [
        (80e9, 0.9, 16_060_522_496, 8192, 131_072, 52),
        (80e9, 1.0, 0, 4096, 4_718_592, 4),
        (640e9, 1.0, 349_208_518_656, 4096, 4_718_592, 15),
        (80e9, 1.0, 141_107_412_992, 1, 327_680, 0),  # the weights alone are too large
    ],
)
def test_sessions_that_fit_beside_the_weights(memory, usable, weights, seq_len, kv, sessions):
    assert sessions_that_fit(memory, weights, seq_len, kv, usable=usable) == sessions
