"""One row's way through a decoder layer: a decode step of one session, with as little between the products as can be.

The products of a small model take a quarter of a millisecond a layer, and forty small tensor operations in
Python take as long as half of that. Here everything between two products is done in place on a few vectors
that are seen both as tensors and as numpy arrays (numpy's small operations cost a third of torch's).
The vectors are shared by all layers: one thread runs the model, as everywhere in the engine.

numpy does no matrix products here: its BLAS has threads of its own, which spin and starve PyTorch's.
Letters in shapes: K hidden width, H query heads, G key-value heads, D head width, I inner width of the MLP.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from engine.kernels.layer_inputs import Floats, LayerInputs
from engine.kernels.linear import FixedProduct

WIDEST = 8192  # numpy's dot product starts threads beyond 10,000


@dataclass(frozen=True, slots=True)
class RowSizes:
    """Widths of a layer; layers of equal sizes share their vectors."""

    hidden: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    inner: int


class RowVectors:
    """The vectors between the products, and their views in the shapes each use needs."""

    def __init__(self, sizes: RowSizes) -> None:
        heads, kv_heads, width = sizes.num_heads, sizes.num_kv_heads, sizes.head_dim
        self.normed = torch.zeros(sizes.hidden)  # input of qkv, later of gate and up
        self.mixed = torch.zeros((heads + 2 * kv_heads) * width)  # q, k and v as the product leaves them
        self.turned = torch.zeros((heads + kv_heads) * width)  # q and k after rotation
        self.attended = torch.zeros(heads * width)
        self.added = torch.zeros(sizes.hidden)  # what attention, later the MLP, adds to the residual
        self.gate_up = torch.zeros(2 * sizes.inner)
        self.gated = torch.zeros(sizes.inner)
        self.gated_row = self.gated[None]  # (1, I)
        self.normed_array: Floats = self.normed.numpy()
        self.added_array: Floats = self.added.numpy()
        self.gate, self.up = self.gate_up.view(2, 1, sizes.inner)  # (1, I) each
        both = self.turned.view(1, heads + kv_heads, 1, width)
        self.query, self.key = both[:, :heads], both[:, heads:]  # (1, H, 1, D) and (1, G, 1, D)
        self.value = self.mixed.view(1, heads + 2 * kv_heads, 1, width)[:, heads + kv_heads :]  # (1, G, 1, D)
        halves = (heads + kv_heads, 2, width // 2)
        self._halves: Floats = self.mixed[: self.turned.numel()].numpy().reshape(halves)
        self._swapped: Floats = self._halves[:, ::-1]
        self._turned: Floats = self.turned.numpy().reshape(halves)
        self._scratch: Floats = np.zeros(halves, np.float32)

    def turn(self, inputs: LayerInputs) -> None:
        """Rotate q and k by their position: x cos + (x with its halves swapped) sin."""
        np.multiply(self._halves, inputs.row_cos, out=self._turned)
        np.multiply(self._swapped, inputs.row_sin, out=self._scratch)
        np.add(self._turned, self._scratch, out=self._turned)


@dataclass(frozen=True, slots=True)
class RowNorm:
    """A root mean square norm into `out`."""

    weight: Floats
    epsilon: float
    out: Floats

    def __call__(self, row: Floats) -> None:
        mean_square = float(np.dot(row, row)) / row.size
        np.multiply(row, (mean_square + self.epsilon) ** -0.5, out=self.out)
        np.multiply(self.out, self.weight, out=self.out)


@dataclass(frozen=True, slots=True)
class RowLayer:
    """A decoder layer for one row. The products read and write the vectors."""

    vectors: RowVectors
    attention: Any  # the layer's attention module, which has a fast forward
    activation: nn.Module
    first_norm: RowNorm
    second_norm: RowNorm
    qkv: FixedProduct
    out: FixedProduct
    gate_up: FixedProduct
    down: FixedProduct

    def takes(self, hidden_states: Tensor, cache: object) -> bool:
        """One row with a cache, and nobody listening inside the layer."""
        one_row = hidden_states.numel() == self.vectors.normed.numel()
        return one_row and cache is not None and not self.attention._forward_hooks

    def run(
        self,
        hidden_states: Tensor,
        position_embeddings: tuple[Tensor, Tensor],
        attention_mask: Tensor | None,
        cache: Any,
        **kwargs: Any,
    ) -> Tensor:
        """What the layer makes of hidden_states (1, 1, K): a new tensor."""
        vectors = self.vectors
        residual: Floats = hidden_states.numpy().reshape(-1)
        inputs = self.attention.shared.of(self.attention, position_embeddings)
        self.first_norm(residual)
        self.qkv()
        vectors.turn(inputs)
        query, key, value = vectors.query, vectors.key, vectors.value
        output, _ = self.attention.look(inputs, query, key, value, attention_mask, cache, kwargs)
        vectors.attended.copy_(output.view(-1))
        self.out()
        residual = residual + vectors.added_array
        self.second_norm(residual)
        self.gate_up()
        torch.mul(self.activation(vectors.gate), vectors.up, out=vectors.gated_row)
        self.down()
        return torch.from_numpy(residual + vectors.added_array).view(hidden_states.shape)
