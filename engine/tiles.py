"""One head's attention worked out tile by tile: the online softmax that fused kernels run, in plain numpy.

A kernel that sees only a few keys at a time cannot know the largest score in advance. It keeps three things: the
largest score so far, the sum of exponentials below it, and the weighted sum of values below it. When a later tile
has a larger score, what was summed is scaled down once and the walk goes on; one division at the end gives the
output. No row of weights is ever stored. A sink, an extra logit without a key, is where the walk begins.

Letters in shapes: K keys visible, N keys of one tile, D head width, Dv value width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.errors import InvalidSettings
from engine.records import freeze_arrays

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class HeadInputs:
    """What one query head of one layer worked with at one step, float32 whatever the model runs in.

    query    (D) after position rotation
    keys     (K, D) as cached, rotated too; values (K, Dv)
    scaling  what the model multiplies the scores by
    softcap  scores become softcap * tanh(scores / softcap); None where the model has none
    sink     extra logit that takes part in the softmax and has no key; None where the model has none
    visible  (K) bool, False where the layer's mask hides a key (a sliding window, say)
    """

    query: NDArray[np.float32]
    keys: NDArray[np.float32]
    values: NDArray[np.float32]
    scaling: float
    softcap: float | None
    sink: float | None
    visible: NDArray[np.bool_]

    def __post_init__(self) -> None:
        freeze_arrays(self)

    def scores(self, start: int = 0, end: int | None = None) -> NDArray[np.float32]:
        """Scores (N) of keys `start` to `end`: scaled, softcapped, -inf where hidden."""
        raw = np.float32(self.scaling) * (self.keys[start:end] @ self.query)
        if self.softcap is not None:
            raw = np.float32(self.softcap) * np.tanh(raw / np.float32(self.softcap))
        return np.where(self.visible[start:end], raw, np.float32(-np.inf))


@dataclass(frozen=True, slots=True, eq=False)
class Partial:
    """Attention over some of the keys, not yet divided.

    largest  m, the largest score seen; -inf where nothing was
    total    l, sum of e^(score - m)
    output   o (Dv), sum of e^(score - m) * value
    """

    largest: float
    total: float
    output: Floats

    def __post_init__(self) -> None:
        freeze_arrays(self)

    @property
    def divided(self) -> Floats:
        """o / l (Dv): the attention output if these were all the keys. Zero where nothing was seen."""
        return self.output / self.output.dtype.type(self.total) if self.total else self.output


@dataclass(frozen=True, slots=True, eq=False)
class Tile:
    """One tile of the walk.

    start, end  the keys it holds
    scores      (N)
    rescale     e^(m before - m after): what everything summed so far was multiplied by; 1 where m did not move
    after       the running state once the tile is in
    """

    start: int
    end: int
    scores: NDArray[np.float32]
    rescale: float
    after: Partial

    def __post_init__(self) -> None:
        freeze_arrays(self)


def nothing_yet(width: int, sink: float | None = None, dtype: type[np.floating[Any]] = np.float32) -> Partial:
    """Where a walk over values of `width` begins: at nothing, or at the sink, which has a weight and no value."""
    empty = np.zeros(width, dtype)
    return Partial(-np.inf, 0.0, empty) if sink is None else Partial(float(sink), 1.0, empty)


def partial_of(scores: Floats, values: Floats) -> Partial:
    """Attention over `scores` (N) and `values` (N, Dv) alone, in their own precision."""
    largest = float(scores.max(initial=-np.inf))
    if largest == -np.inf:
        return nothing_yet(values.shape[1], dtype=values.dtype.type)
    weights = np.exp(scores - scores.dtype.type(largest))  # (N)
    return Partial(largest, float(weights.sum(dtype=scores.dtype)), weights @ values)


def merge(first: Partial, second: Partial) -> Partial:
    """Two partial results as one: m = max(m1, m2), and each l and o times e^(its m - m), added."""
    largest = max(first.largest, second.largest)
    if largest == -np.inf:
        return first
    kind = first.output.dtype.type
    keep, add = kind(np.exp(first.largest - largest)), kind(np.exp(second.largest - largest))
    total = kind(first.total) * keep + kind(second.total) * add
    return Partial(largest, float(total), first.output * keep + second.output * add)


def walk(inputs: HeadInputs, tile_size: int) -> tuple[Tile, ...]:
    """Every tile of `tile_size` keys in order, with the running state after each. Raises InvalidSettings."""
    if tile_size < 1:
        raise InvalidSettings(f"A tile must hold 1 key or more, got {tile_size}.")
    running, tiles = nothing_yet(inputs.values.shape[1], inputs.sink), []
    for start in range(0, len(inputs.keys), tile_size):
        end = min(start + tile_size, len(inputs.keys))
        scores = inputs.scores(start, end)
        after = merge(running, partial_of(scores, inputs.values[start:end]))
        tiles.append(Tile(start, end, scores, _rescale(running, after), after))
        running = after
    return tuple(tiles)


def _rescale(before: Partial, after: Partial) -> float:
    """1 also where nothing had been summed: there is nothing to scale down."""
    return 1.0 if before.largest == -np.inf else float(np.exp(before.largest - after.largest))


def two_passes(inputs: HeadInputs) -> NDArray[np.float32]:
    """Output (Dv) the plain way in float32: all scores stored, their largest found, exponentials over their sum."""
    weights, values = _weights(inputs.scores(), inputs.sink), inputs.values
    return np.asarray(weights @ values, dtype=np.float32)


def exact(inputs: HeadInputs) -> NDArray[np.float64]:
    """Output (Dv) in float64 from the same inputs: what every order of summing would give without rounding."""
    return np.asarray(weights64(inputs) @ inputs.values.astype(np.float64))


def weights64(inputs: HeadInputs) -> NDArray[np.float64]:
    """Attention weights (K) in float64. They sum to 1, less a sink's share."""
    scores = inputs.scaling * (inputs.keys.astype(np.float64) @ inputs.query.astype(np.float64))
    if inputs.softcap is not None:
        scores = inputs.softcap * np.tanh(scores / inputs.softcap)
    return np.asarray(_weights(np.where(inputs.visible, scores, -np.inf), inputs.sink), dtype=np.float64)


def _weights(scores: Floats, sink: float | None) -> Floats:
    kind = scores.dtype.type
    largest = scores.max() if sink is None else max(scores.max(), kind(sink))
    weights = np.exp(scores - largest)
    total = weights.sum() + (kind(0) if sink is None else np.exp(kind(sink) - largest))
    return np.asarray(weights / total)
