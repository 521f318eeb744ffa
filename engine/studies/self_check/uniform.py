"""The uniform number of a draw, worked out on paper: Philox-4x64-10 in whole numbers, no library.

From Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011), section 3.3.
"""

from __future__ import annotations

MASK = 2**64 - 1
MULTIPLIERS = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
WEYL = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
ROUNDS = 10


def philox(key: tuple[int, int], counter: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    """The block of four 64-bit words that belongs to a counter under a key."""
    (k0, k1), (a, b, c, d) = key, counter
    for _ in range(ROUNDS):
        first, second = MULTIPLIERS[0] * a, MULTIPLIERS[1] * c
        a, b, c, d = (second >> 64) ^ b ^ k0, second & MASK, (first >> 64) ^ d ^ k1, first & MASK
        k0, k1 = (k0 + WEYL[0]) & MASK, (k1 + WEYL[1]) & MASK
    return a, b, c, d


def uniform_of(seed: int, step: int) -> float:
    """u of (seed, step): the top 53 bits of the first word of block step + 1, as a part of 1."""
    word, *_ = philox((seed & MASK, seed >> 64), (step + 1, 0, 0, 0))
    return (word >> 11) / 2**53
