"""What every layer of one forward shares: the rotary angles of its tokens, and the attention function to call.

transformers works these out anew in every layer. Here they are worked out when a forward's angles are first
seen, and kept until other angles come.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

Floats = NDArray[np.float32]
Attend = Callable[..., tuple[Tensor, Tensor | None]]


@dataclass(frozen=True, slots=True, eq=False)
class LayerInputs:
    """The sign of sin's first half is turned, so that rotating is x cos + (x with its halves swapped) sin.

    given        the sin that transformers passed: tells one forward from another
    cos, sin     (B, 1, M, D)
    row_cos, row_sin  (2, D/2) halves of the first token's
    attend       the attention function registered under the model's attn_implementation
    """

    given: Tensor
    cos: Tensor
    sin: Tensor
    row_cos: Floats
    row_sin: Floats
    attend: Attend

    def turn(self, x: Tensor) -> Tensor:
        """Rotate x (B, H, M, D) by its position."""
        return torch.addcmul(x * self.cos, x.roll(x.shape[-1] // 2, -1), self.sin)


class SharedInputs:
    """The latest forward's `LayerInputs`, found again by each of its layers."""

    def __init__(self) -> None:
        self._latest: LayerInputs | None = None

    def of(self, attention: Any, position_embeddings: tuple[Tensor, Tensor]) -> LayerInputs:
        """The inputs that go with `position_embeddings`, a pair of cos and sin (B, M, D)."""
        latest = self._latest
        if latest is None or latest.given is not position_embeddings[1]:
            self._latest = latest = _work_out(attention, *position_embeddings)
        return latest


def _work_out(attention: Any, cos: Tensor, sin: Tensor) -> LayerInputs:
    half = sin.shape[-1] // 2
    signed = torch.cat([-sin[..., :half], sin[..., half:]], -1)
    row_cos, row_sin = (t[0, 0].reshape(2, half).numpy() for t in (cos, signed))
    attend = ALL_ATTENTION_FUNCTIONS.get_interface(attention.config._attn_implementation, attention.eager)
    return LayerInputs(sin, cos.unsqueeze(1), signed.unsqueeze(1), row_cos, row_sin, attend)
