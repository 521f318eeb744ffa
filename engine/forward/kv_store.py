"""The KV cache of one sequence: what every layer remembers, and what it costs.

After a step the cache holds every token except the one just drawn, so `length` is one less than the
number of tokens on screen. The buffers grow by doubling and are appended to in place; any earlier length is
a view of the same storage, so looking back copies nothing. Where all layers are alike they share one
allocation, a block, so that a batch gets at all layers of a session at once (ragged.py).

Sliding-window layers keep every key too: the mask applies the window, and a rewind can always be done.
Letters in shapes: L layers, G key-value heads, C capacity in tokens, N tokens, D head width (keys and values may
differ, but not in a block).
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

WIDENED = 1 << 20  # numbers of 16 bits made 32 at a time: 4 MB
FIRST_CAPACITY = 64  # tokens; a short prompt and a short answer never reallocate


class KVStore:
    """Growable keys and values of one sequence, all layers.

    alike: every layer's keys and values have the same shape, so that they can share a block.
    """

    def __init__(self, num_layers: int, *, alike: bool = True) -> None:
        self.num_layers = num_layers
        self.alike = alike
        self.length = 0  # tokens that every layer holds; moves only when a forward is complete
        self.prompt_length = 0  # tokens that the sequence began with; 0 until it is fed (forward/rotary.py)
        self._block: Tensor | None = None  # (L, 2, G, C, D); keys are 0, values 1
        self._keys: list[Tensor | None] = [None] * num_layers
        self._values: list[Tensor | None] = [None] * num_layers

    def append(self, layer: int, keys: Tensor, values: Tensor) -> None:
        """Write `keys` and `values` (G, M, D) behind the first `length` tokens of a layer.

        `length` does not move: `advance` does that once, after all layers have appended, so a forward
        that fails half-way leaves the cache as it was.
        """
        end = self.length + keys.shape[1]
        if self.alike:
            self._make_room(end, keys)
        self._keys[layer] = _written(self._keys[layer], self.length, end, keys)
        self._values[layer] = _written(self._values[layer], self.length, end, values)

    def block(self, room: int) -> Tensor:
        """All layers' keys and values (L, 2, G, C, D), with room for `room` tokens. Only of a store that holds some."""
        assert self._block is not None, "a block exists where layers are alike and tokens were appended"
        self._make_room(room, self._block)
        return self._block

    def _make_room(self, end: int, like: Tensor) -> None:
        """Let the block hold `end` tokens; `like` (..., G, any, D) tells the shape and the kind of a token."""
        old = self._block
        if old is not None and old.shape[3] >= end:
            return
        capacity = _capacity(end, None if old is None else old.shape[3])
        block = like.new_empty(self.num_layers, 2, like.shape[-3], capacity, like.shape[-1])
        if old is not None:
            block[:, :, :, : self.length] = old[:, :, :, : self.length]
        self._block = block
        self._keys, self._values = list(block[:, 0].unbind(0)), list(block[:, 1].unbind(0))

    def advance(self, num_tokens: int) -> None:
        """Make the tokens appended by a whole forward part of the cache."""
        self.length += num_tokens

    def view(self, layer: int, length: int) -> tuple[Tensor, Tensor]:
        """Keys and values (G, N, D) of the first `length` tokens: views, not copies."""
        keys, values = self._keys[layer], self._values[layer]
        assert keys is not None and values is not None, f"layer {layer} holds nothing yet"
        assert length <= keys.shape[1], f"layer {layer} has room for {keys.shape[1]} tokens, {length} were asked for"
        return keys[:, :length], values[:, :length]

    def keys_of_layers(self, length: int) -> Tensor | None:
        """Keys (L, G, N, D) of the first `length` tokens, a view; None where layers do not share a block."""
        return None if self._block is None else self._block[:, 0, :, :length]

    def truncate(self, length: int) -> None:
        """Forget every token from position `length` on. The buffers stay, so this costs nothing."""
        assert 0 <= length <= self.length, f"cannot cut a cache of {self.length} tokens to {length}"
        self.length = length

    def fork(self, length: int) -> KVStore:
        """An independent copy of the first `length` tokens."""
        assert length <= self.length, f"cannot fork {length} tokens of {self.length}"
        branch = KVStore(self.num_layers, alike=self.alike)
        for layer in range(self.num_layers):
            if self._keys[layer] is not None:
                keys, values = self.view(layer, length)
                branch.append(layer, keys, values)
        branch.length, branch.prompt_length = length, self.prompt_length
        return branch

    def clear(self) -> None:
        """Drop the tensors."""
        self.length = self.prompt_length = 0
        self._block = None
        self._keys = [None] * self.num_layers
        self._values = [None] * self.num_layers

    def norms(self, start: int, end: int) -> Tensor:
        """L2 norms (2, L, G, M) of the keys (0) and values (1) at positions start to end, fp32 on CPU."""
        assert end <= self.length, f"the cache holds {self.length} tokens, {end} were asked for"
        if self._block is not None and end - start == 1 and self._block.dtype == torch.float32 and self._block.is_cpu:
            new = self._block.numpy()[:, :, :, start]  # (L, 2, G, D): numpy starts sooner, and there is little to do
            return torch.from_numpy(np.sqrt(np.vecdot(new, new)).transpose(1, 0, 2)[..., None])
        if self._block is not None:  # all layers at once: a call per layer costs more than its arithmetic
            return _norms(self._block[:, :, :, start:end]).transpose(0, 1).cpu()  # (L, 2, G, M) turned
        views = [self.view(layer, end) for layer in range(self.num_layers)]
        keys = torch.stack([_norms(k[:, start:]) for k, _ in views])  # (L, G, M)
        values = torch.stack([_norms(v[:, start:]) for _, v in views])  # (L, G, M)
        return torch.stack([keys, values]).cpu()

    def bytes_at(self, length: int) -> int:
        """Bytes of the first `length` tokens: a sum over the live tensors."""
        if length == 0:
            return 0
        assert length <= self.length, f"the cache holds {self.length} tokens, {length} were asked for"
        if self._block is not None:
            return self._block[:, :, :, :length].numel() * self._block.element_size()
        views = [t for layer in range(self.num_layers) for t in self.view(layer, length)]
        return sum(t.numel() * t.element_size() for t in views)

    @property
    def live_bytes(self) -> int:
        """Bytes of the tokens held."""
        return self.bytes_at(self.length)

    @property
    def reserved_bytes(self) -> int:
        """Bytes allocated, room for tokens to come included."""
        if self._block is not None:
            return self._block.numel() * self._block.element_size()
        return sum(t.numel() * t.element_size() for t in (*self._keys, *self._values) if t is not None)


def _norms(vectors: Tensor) -> Tensor:
    """L2 norms (..., M) of `vectors` (..., M, D) in fp32. 16 bits are widened some tokens at a time."""
    if vectors.dtype == torch.float32:
        norms: Tensor = vectors.norm(dim=-1)
        return norms
    count = vectors.shape[-2]
    step = max(1, WIDENED * count // max(1, vectors.numel()))  # tokens
    starts = range(0, max(1, count), step)
    parts = [vectors.narrow(-2, start, min(step, count - start)).float().norm(dim=-1) for start in starts]
    return torch.cat(parts, dim=-1)


def _written(buffer: Tensor | None, start: int, end: int, new: Tensor) -> Tensor:
    """`buffer` (G, C, D) with `new` (G, M, D) at start:end; reallocated, doubling, when it is too short."""
    if buffer is None or buffer.shape[1] < end:
        capacity = _capacity(end, None if buffer is None else buffer.shape[1])
        grown = new.new_empty(new.shape[0], capacity, new.shape[2])
        if buffer is not None:
            grown[:, :start] = buffer[:, :start]
        buffer = grown
    buffer[:, start:end] = new
    return buffer


def _capacity(end: int, old: int | None) -> int:
    return max(end, FIRST_CAPACITY if old is None else 2 * old)
