"""How far two next-token distributions lie apart, over the whole vocabulary: nothing is cut off or estimated.

Sums are float64. A token of probability zero adds nothing on its own side; where the other side lacks a token that this
side has, the KL divergence is infinite, and how much probability those tokens hold says more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.records import freeze_arrays

LogProbs = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Distributions:
    """Both distributions of one step, as natural logarithms (V,); -inf where a token has no chance.

    raw    softmax of the model's logits
    final  after every stage of sampling: what the token was drawn from
    """

    raw: LogProbs
    final: LogProbs

    def __post_init__(self) -> None:
        freeze_arrays(self)


@dataclass(frozen=True, slots=True)
class Divergence:
    """From one distribution to another.

    kl_bits   D(one || other) in bits; None: infinite, because the other lacks a token that this one has
    unshared  probability that this one gives to tokens the other lacks
    """

    kl_bits: float | None
    unshared: float


def log_softmax(scores: NDArray[np.float32]) -> LogProbs:
    """Logarithms of the softmax of scores (V,), of which at least one is finite."""
    below = scores.astype(np.float64)
    below -= below.max()
    below -= np.log(np.exp(below).sum())
    return below


def divergence(one: LogProbs, other: LogProbs) -> Divergence:
    """D(one || other), both (V,)."""
    assert one.shape == other.shape, f"two models: {one.size} and {other.size} tokens"
    probs = np.exp(one)
    has = np.isfinite(one)
    shared = has & np.isfinite(other)
    unshared = float(probs[has & ~shared].sum())
    if shared.sum() < has.sum():
        return Divergence(None, unshared)
    nats = float((probs[shared] * (one[shared] - other[shared])).sum())
    return Divergence(max(0.0, nats / float(np.log(2))), unshared)  # rounding may leave a hair below zero
