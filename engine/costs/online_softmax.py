"""Softmax over keys that arrive in tiles: a running maximum, a running sum, an output that is rescaled.

Exact as real numbers, whatever the tiles and their order; only rounding differs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce


@dataclass(frozen=True, slots=True)
class Partial:
    """What one query knows after some keys.

    maximum  largest score so far
    total    sum of exp(score - maximum)
    output   sum of exp(score - maximum) · value, one number per value dimension, not yet divided by total
    """

    maximum: float
    total: float
    output: tuple[float, ...]

    @property
    def result(self) -> tuple[float, ...]:
        """The attention output over the keys so far."""
        return tuple(o / self.total for o in self.output)


def tile(scores: Sequence[float], values: Sequence[Sequence[float]]) -> Partial:
    """One tile: scores (T,), values (T, D)."""
    maximum = max(scores)
    weights = [math.exp(s - maximum) for s in scores]
    width = len(values[0])
    output = tuple(sum(w * v[i] for w, v in zip(weights, values, strict=True)) for i in range(width))
    return Partial(maximum, sum(weights), output)


def merge(first: Partial, second: Partial) -> Partial:
    """Two partial results as if their keys had come together."""
    maximum = max(first.maximum, second.maximum)
    a, b = math.exp(first.maximum - maximum), math.exp(second.maximum - maximum)
    output = tuple(a * x + b * y for x, y in zip(first.output, second.output, strict=True))
    return Partial(maximum, a * first.total + b * second.total, output)


def in_tiles(scores: Sequence[float], values: Sequence[Sequence[float]], size: int) -> Partial:
    """All keys, `size` at a time."""
    starts = range(0, len(scores), size)
    return reduce(merge, (tile(scores[i : i + size], values[i : i + size]) for i in starts))
