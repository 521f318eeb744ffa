"""What came of changing one token under the live session's cache: which keys and values moved, and by how much."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.records import freeze_arrays


@dataclass(frozen=True, slots=True, eq=False)
class KeyChange:
    """The cache of a copy whose first token is another one, held against the same copy with the token unchanged.

    L layers, N positions. Of two vectors a (before) and b, the relative change is |b - a| / |a|, all heads together.

    position   of the token that was changed
    before_id, after_id  the token there, and what it was changed to
    token_ids  (N) of the unchanged copy: the live session's first N tokens
    moved      (2, L, N) float32, relative change of each key (0) and value (1)
    same_bits  (2, L, N) bool, where every number stayed the same to the last bit
    rounding   (2, L, N) float32, relative difference between the live cache and the unchanged copy: the same tokens,
               fed in other portions. What moved less than this did not move
    """

    position: int
    before_id: int
    after_id: int
    token_ids: tuple[int, ...]
    moved: NDArray[np.float32]
    same_bits: NDArray[np.bool_]
    rounding: NDArray[np.float32]

    def __post_init__(self) -> None:
        freeze_arrays(self)
