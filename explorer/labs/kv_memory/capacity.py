"""How much room there is for caches, and how many sessions of one length fit into it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from engine.costs.bytes import weight_bytes
from engine.costs.paging import paged
from engine.costs.shape import ModelShape


@dataclass(frozen=True, slots=True)
class Room:
    """Memory, and what of it is for weights and caches.

    memory   bytes of all devices together
    usable   share that weights and caches may take; the rest is for activations and the runtime
    weight_bytes_each, kv_bytes_each  of one number
    block    tokens that the cache is handed out in
    """

    shape: ModelShape
    memory: float
    usable: float
    weight_bytes_each: float
    kv_bytes_each: float
    block: int = 16

    @property
    def knows_weights(self) -> bool:
        """Whether the weights are known, and so what they leave for caches."""
        return self.shape.knows_weights

    @property
    def weights(self) -> int:
        """Bytes of all weights."""
        return weight_bytes(self.shape, self.weight_bytes_each)

    @property
    def for_caches(self) -> float:
        """Bytes left for caches; negative where the weights alone do not fit."""
        return self.memory * self.usable - self.weights

    def sequence(self, tokens: int) -> int:
        """Bytes of one sequence, in whole blocks; layers with a window keep no more than that."""
        return self.shape.kv_bytes(paged(tokens, self.block).blocks * self.block, self.kv_bytes_each)

    def sessions(self, tokens: int) -> int:
        """Sequences of this length that fit."""
        return max(0, math.floor(self.for_caches / self.sequence(tokens)))

    def longest(self, sessions: int) -> int:
        """The longest context, in whole blocks, at which so many sessions fit; 0 where not even one block does."""
        low, high = 0, 2**24 // self.block
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.sessions(middle * self.block) >= sessions else (low, middle - 1)
        return low * self.block
