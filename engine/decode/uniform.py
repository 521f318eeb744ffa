"""The one uniform number behind a draw.

It is keyed by (seed, step) and nothing else: not by the batch, the device, or how often somebody
looked. Rewinding to a step and drawing again gives the same number, because there is no stream to advance.
"""

from __future__ import annotations

import numpy as np

_DOUBLE_BITS = 53  # bits of a float64 below its leading one, so every value is exact and below 1


def uniform(seed: int, step: int) -> float:
    """A number in [0, 1): the top 53 bits of Philox-4x64-10's first word.

    The key is the seed. numpy raises the counter before it makes a block, so step n reads the block of counter n + 1.
    """
    word = np.random.Philox(key=seed, counter=step).random_raw()
    return float(int(word) >> (64 - _DOUBLE_BITS)) * 2.0**-_DOUBLE_BITS
