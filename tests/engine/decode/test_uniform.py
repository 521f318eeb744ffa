"""The uniform number of a draw, against Philox written out by hand."""

from __future__ import annotations

import pytest

from engine.config import MAX_SEED
from engine.decode.uniform import uniform

WORD = 2**64


def philox_first_word(key: int, counter: int) -> int:
    """First 64-bit word of Philox-4x64-10, from the paper's round function."""
    words = [counter % WORD, counter // WORD, 0, 0]
    keys = [key % WORD, key // WORD]
    for _ in range(10):
        first, third = 0xD2E7470EE14C6C93 * words[0], 0xCA5A826395121157 * words[2]
        words = [
            third // WORD ^ words[1] ^ keys[0],
            third % WORD,
            first // WORD ^ words[3] ^ keys[1],
            first % WORD,
        ]
        keys = [(keys[0] + 0x9E3779B97F4A7C15) % WORD, (keys[1] + 0xBB67AE8584CAA73B) % WORD]
    return words[0]


@pytest.mark.parametrize(("seed", "step"), [(0, 0), (0, 1), (1, 0), (42, 7), (MAX_SEED, 100_000), (3, 2**40)])
def test_u_is_the_top_53_bits_of_philox_at_counter_step_plus_one(seed: int, step: int) -> None:
    assert uniform(seed, step) == (philox_first_word(seed, step + 1) >> 11) / 2**53


def test_u_is_the_same_on_every_platform_and_release() -> None:
    pinned = {(0, 0): 0.011546754286331562, (0, 1): 0.5023796042735054, (1234, 56): 0.28467896699022666}
    assert {key: uniform(*key) for key in pinned} == pinned


def test_u_depends_on_nothing_but_seed_and_step() -> None:
    forwards = [uniform(7, step) for step in range(50)]
    backwards = [uniform(7, step) for step in reversed(range(50))]
    assert forwards == backwards[::-1]
    assert len({*forwards, *(uniform(8, step) for step in range(50))}) == 100


def test_u_lies_in_0_to_1_and_spreads_evenly() -> None:
    draws = [uniform(seed, step) for seed in range(20) for step in range(500)]
    assert 0.0 <= min(draws) < max(draws) < 1.0
    counts = [sum(1 for u in draws if int(u * 20) == bucket) for bucket in range(20)]
    chi_square = sum((count - 500) ** 2 / 500 for count in counts)
    assert chi_square < 43.8  # 19 degrees of freedom: exceeded once in a thousand
