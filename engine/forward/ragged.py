"""One decode step of many sessions, each with a cache of its own length: appended to and attended to together.

Thirty layers times thirty sessions are a thousand small calls, and each costs more than its arithmetic. So what
does not change from layer to layer is prepared once per forward: where each session's new token goes, and which
keys and values it reads. Sessions of similar length are copied side by side, layer by layer, into one padded
buffer, and attention over them is two batched products. A session longer than `LONGEST_COPIED` stays where it
is and is attended to alone: its copy would cost more than the calls it saves.

The padding is zero and stays so for the whole forward, so no session ever reads another's numbers.
Letters in shapes: B sessions, L layers, H query heads, G key-value heads, K keys of the longest, D head width.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from engine.forward.kv_store import KVStore

# query, keys, values, mask of who may look, scaling, softcap, sink -> output
Attend = Callable[[Tensor, Tensor, Tensor, Tensor | None, float, float | None, Tensor | None], Tensor]

LONGEST_COPIED = 256  # tokens; beyond it reading the cache twice costs more on a CPU than a call per session
SHORTEST_BUCKET = 32  # tokens; below it padding is cheaper than another bucket


class Group:
    """Sessions of similar length, attended to with one call.

    rows     their places in the batch
    length   keys of the longest
    watched  those of `rows` whose weights are wanted
    kept     layer -> weights (B, G, H/G, K), where anybody's are wanted and they are written out
    """

    def __init__(
        self, rows: Sequence[int], lengths: Sequence[int], views: Sequence[Sequence[Tensor]], watched: Collection[int]
    ) -> None:
        sample = views[0][0]  # (2, G, length, D)
        self.rows = tuple(rows)
        self.lengths = tuple(lengths)
        self.length = max(lengths)
        self.watched = frozenset(watched).intersection(rows)
        self.kept: dict[int, Tensor] = {}
        self.index = torch.tensor(self.rows, device=sample.device)
        _, heads, _, width = sample.shape
        side_by_side = sample.new_zeros(2, len(rows), heads, self.length, width)
        self._keys, self._values = side_by_side
        places = side_by_side.unbind(1)
        self._places = [place[:, :, :length] for place, length in zip(places, lengths, strict=True)]
        self._layers = list(zip(*views, strict=True))  # per layer: (2, G, length, D) of each session
        positions = torch.arange(self.length, device=sample.device)
        visible = positions < torch.tensor(lengths, device=sample.device)[:, None]  # (B, K)
        self._visible = None if min(lengths) == self.length else visible[:, None, None]  # (B, 1, 1, K)

    def load(self, layer: int) -> tuple[Tensor, Tensor]:
        """This layer's keys and values (B, G, K, D), side by side."""
        torch._foreach_copy_(self._places, self._layers[layer])
        return self._keys, self._values

    def attend(
        self,
        layer: int,
        query: Tensor,
        mask: Tensor | None,
        scaling: float,
        softcap: float | None,
        sink: Tensor | None,
    ) -> Tensor:
        """Attention output (B, H, 1, D) for the group's query (B, H, 1, D) and the whole batch's mask."""
        keys, values = self.load(layer)
        if not by_products(query, softcap, sink):
            return attend_fused(query, keys, values, self.mask(mask), scaling)
        weights = group_weights(query, keys, self.mask(mask), scaling, softcap, sink)
        if self.watched:
            self.kept[layer] = weights
        return torch.matmul(weights.to(values.dtype), values).view(query.shape)

    def rows_kept(self) -> dict[int, NDArray[np.float32]]:
        """Place in the batch -> weights (L, H, K) over the session's own keys."""
        if not self.kept:
            return {}
        whole = torch.stack([self.kept[layer] for layer in sorted(self.kept)], 1).flatten(2, 3)  # (B, L, H, K)
        own = zip(self.rows, whole.cpu().numpy(), self.lengths, strict=True)
        return {row: weights[:, :, :length].copy() for row, weights, length in own if row in self.watched}

    def mask(self, model_mask: Tensor | None) -> Tensor | None:
        """Who may look, (B, 1, 1, K). The model's own mask (B, 1, 1, K) hides what is past a session's end too."""
        return self._visible if model_mask is None else model_mask[self.index, :, :, : self.length]


class Loner:
    """A session that is attended to by itself, without a copy."""

    def __init__(self, row: int, length: int, views: Sequence[Tensor]) -> None:
        self.row = row
        self.length = length
        self._views = views

    def load(self, layer: int) -> tuple[Tensor, Tensor]:
        """This layer's keys and values (1, G, K, D)."""
        keys, values = self._views[layer].unsqueeze(1)
        return keys, values

    def mask(self, model_mask: Tensor | None) -> Tensor | None:
        """The model's own mask, cut to this session."""
        return None if model_mask is None else model_mask[self.row : self.row + 1, :, :, : self.length]


class RaggedBatch:
    """The stores of a decode step, ready to be appended to and read. Made once per forward."""

    def __init__(self, stores: Sequence[KVStore], watched: Collection[int] = ()) -> None:
        """`watched` are the places of those whose weights are wanted."""
        blocks = [store.block(store.length + 1) for store in stores]  # (L, 2, G, C, D) each
        ends = [block[:, :, :, store.length].unbind(0) for store, block in zip(stores, blocks, strict=True)]
        self._ends = list(zip(*ends, strict=True))  # per layer: (2, G, D) of each session
        lengths = [store.length + 1 for store in stores]
        views = [block[:, :, :, :length].unbind(0) for block, length in zip(blocks, lengths, strict=True)]
        buckets = _buckets(lengths, copy_all=blocks[0].is_cuda)
        self.loners = [Loner(rows[0], lengths[rows[0]], views[rows[0]]) for rows in buckets if len(rows) == 1]
        self.groups = [
            Group(rows, [lengths[row] for row in rows], [views[row] for row in rows], watched)
            for rows in buckets
            if len(rows) > 1
        ]

    def append(self, layer: int, keys: Tensor, values: Tensor) -> None:
        """Write one new token of every session, (B, G, 1, D); the stores' lengths do not move."""
        both = torch.stack((keys[:, :, 0], values[:, :, 0]), 1)  # (B, 2, G, D)
        torch._foreach_copy_(self._ends[layer], both.unbind(0))

    def attend(
        self,
        layer: int,
        query: Tensor,
        mask: Tensor | None,
        scaling: float,
        softcap: float | None,
        sink: Tensor | None,
        *,
        alone: Attend,
    ) -> Tensor:
        """Attention output (B, H, 1, D) for query (B, H, 1, D); `alone` is used for the sessions not in a group."""
        if len(self.groups) == 1 and not self.loners:  # all rows in their order
            return self.groups[0].attend(layer, query, mask, scaling, softcap, sink)
        out = torch.empty_like(query)
        for group in self.groups:
            out[group.index] = group.attend(layer, query[group.index], mask, scaling, softcap, sink)
        for loner in self.loners:
            row = slice(loner.row, loner.row + 1)
            out[row] = alone(query[row], *loner.load(layer), loner.mask(mask), scaling, softcap, sink)
        return out

    def rows_kept(self) -> dict[int, NDArray[np.float32]]:
        """Place in the batch -> weights (L, H, K), of those watched that were computed with others."""
        return {row: weights for group in self.groups for row, weights in group.rows_kept().items()}


def _buckets(lengths: Sequence[int], *, copy_all: bool) -> Iterable[list[int]]:
    """Rows that go together: within a factor of two, so that padding stays below what is held; long ones alone."""
    if copy_all:  # a device that starts kernels faster than Python can call them
        return [list(range(len(lengths)))]
    found: dict[tuple[int, int], list[int]] = {}
    for row, length in enumerate(lengths):
        alone = row if length > LONGEST_COPIED else -1
        found.setdefault((alone, (max(length, SHORTEST_BUCKET) - 1).bit_length()), []).append(row)
    return found.values()


def by_products(query: Tensor, softcap: float | None, sink: Tensor | None) -> bool:
    """Whether attention is written out. On a CPU two batched products outrun the fused kernel for one token."""
    return (query.dtype == torch.float32 and not query.is_cuda) or softcap is not None or sink is not None


def attend_fused(query: Tensor, keys: Tensor, values: Tensor, visible: Tensor | None, scaling: float) -> Tensor:
    """Attention output (B, H, 1, D) of one token per session, by the fused kernel; shapes as in `group_weights`."""
    folded = query.reshape(query.shape[0], keys.shape[1], -1, query.shape[3])  # (B, G, H/G, D)
    out = F.scaled_dot_product_attention(folded, keys, values, attn_mask=visible, scale=scaling)
    return out.reshape(query.shape)


def group_weights(
    query: Tensor,
    keys: Tensor,
    visible: Tensor | None,
    scaling: float,
    softcap: float | None,
    sink: Tensor | None,
) -> Tensor:
    """Attention weights (B, G, H/G, K) float32 of one token per session.

    query (B, H, 1, D); keys (B, G, K, D); visible (B, 1, 1, K) bool, None for everywhere. The query heads
    that share a key head become rows of one product, so no key is repeated.
    """
    batch, groups, length, width = keys.shape
    folded = query.reshape(batch, groups, -1, width)  # (B, G, H/G, D)
    scores = torch.matmul(folded.float(), keys.float().transpose(-1, -2)).mul_(scaling)  # (B, G, H/G, K)
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if visible is not None:
        scores.masked_fill_(~visible, float("-inf"))
    if sink is not None:
        extra = sink.float().view(1, groups, -1, 1).expand(batch, -1, -1, 1)
        scores = torch.cat([scores, extra], -1)
    return scores.softmax(-1)[..., :length]
