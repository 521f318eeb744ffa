"""A cache handed out in blocks: how many, what the last one wastes, how many sessions fit."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Paged:
    """A sequence in blocks.

    wasted       slots of its last block that hold nothing
    utilisation  share of the slots that hold a token
    """

    blocks: int
    wasted: int
    utilisation: float


def paged(seq_len: int, block: int = 16) -> Paged:
    """The blocks of `block` tokens that a sequence takes. Keys and values of all layers share one block index."""
    blocks = math.ceil(seq_len / block)
    slots = blocks * block
    return Paged(blocks, slots - seq_len, seq_len / slots if slots else 1.0)


def power_of_two_slots(seq_len: int) -> int:
    """Slots when a sequence gets the next power of two."""
    return 1 << (seq_len - 1).bit_length() if seq_len > 0 else 0


def reserved_waste(seq_len: int, most: int) -> float:
    """Share wasted when `most` slots are reserved from the start."""
    return 1 - seq_len / most


def sessions_that_fit(
    memory: float, weights: float, seq_len: int, kv_bytes_per_token: float, *, block: int = 16, usable: float = 1.0
) -> int:
    """Sequences of one length whose cache fits beside the weights in the usable share of memory; never negative."""
    room = memory * usable - weights
    each = paged(seq_len, block).blocks * block * kv_bytes_per_token
    return max(0, math.floor(room / each))
