"""How far two healthy forward passes over the same weights may differ. Every bound comes from here.

Two passes add the same products in another order, so they differ by rounding alone. One rounding errs by at most
half of eps. A value deep in the model has been through PRODUCTS_PER_LAYER sums a layer, one after the other, of
up to n terms each. In float32 every partial sum is rounded; a vector unit keeps at least LANES partial sums side
by side, so a chain is n / LANES roundings long. In 16 bits the terms are added in float32 and the sum is
rounded once. Roundings are as often up as down, so R of them reach a few times sqrt(R), not R.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedModel

PRODUCTS_PER_LAYER = 6  # q k v, scores, values, out, gate and up, down
LANES = 8  # float32 numbers in the narrowest vector unit in use
SIGMAS = 4.0  # standard deviations of the sum of all roundings
SHARED_ROUNDINGS = 8  # of one softmax row
FLOAT32_EPS = float(np.finfo(np.float32).eps)
Floats = NDArray[np.floating]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The largest differences between two healthy forward passes of one model.

    relative  of a value, as a share of the scale of the values it is among
    eps       of the number format that the model computes in
    """

    relative: float
    eps: float

    @classmethod
    def of(cls, model: PreTrainedModel, num_layers: int) -> Bounds:
        """The bounds of a model in its number format."""
        first = next(model.parameters())
        width = max(p.shape[-1] for p in model.parameters() if p.dim() > 1)
        eps = float(torch.finfo(first.dtype).eps)
        chain = width / LANES if first.dtype == torch.float32 else 1.0
        roundings = chain * (PRODUCTS_PER_LAYER * num_layers + 1)
        return cls(SIGMAS * eps / 2 * roundings**0.5, eps)

    def logits(self, row: Floats) -> float:
        """Of any logit of a row (V,)."""
        finite = row[np.isfinite(row)]
        return self.relative * float(np.abs(finite).max(initial=0.0)) + FLOAT32_EPS

    def attention(self, rows: Floats) -> NDArray[np.float64]:
        """Of each weight of softmax rows (..., K).

        If every score is off by at most d, then ln p is off by at most 2 d (the score and the sum it is divided
        by), and p by 2 d p (1 - p) to first order. The scores of a row reach over ln(largest / smallest weight).
        """
        p = np.asarray(rows, dtype=np.float64)
        largest = p.max(-1, keepdims=True)
        smallest = np.where(p > 0, p, largest).min(-1, keepdims=True)
        reach = np.log(largest / np.maximum(smallest, np.finfo(np.float32).tiny))
        shift = 2 * self.relative * (1 + reach)
        bound: NDArray[np.float64] = shift * p * (1 - p) + 2 * self.eps * p + FLOAT32_EPS
        return bound

    def row_sums(self, sums: Floats, keys: int) -> NDArray[np.float64]:
        """Of sums over K weights: what K roundings reach, and what a sink's share may shift.

        Some roundings are common to a whole row and do not cancel: of the sum, of its reciprocal, of the joining of
        the vector unit's partial sums. That is SHARED_ROUNDINGS half eps in each of the two rows compared.
        """
        rest = np.clip(1 - np.asarray(sums, dtype=np.float64), 0, 1)
        bound: NDArray[np.float64] = self.eps * (SHARED_ROUNDINGS + keys**0.5) + 2 * self.relative * rest
        return bound

    def vectors(self, scale: float) -> float:
        """Of a key's or a value's numbers, or of its norm, in a layer whose largest is `scale`."""
        return self.relative * scale + FLOAT32_EPS
