"""Attention that can be looked at: the model's own fast path, with each step's query kept.

transformers calls the function registered here in every layer. It computes attention with a fused
kernel, as usual, and keeps the query of the last row (after RoPE). The weights of any layer and head
are recomputed from that query and the cached keys when somebody looks, in fp32: the same arithmetic the
kernel did, without ever storing a square of weights.

The mask function has to be registered under the same name: without it transformers passes no mask at
all, and sliding or chunked layers would see too much.

Letters in shapes: B sessions in the forward, H query heads, G key-value heads, M tokens fed, K keys visible, D width.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import causal_mask_function

from engine.kv_store import KVStore
from engine.ragged import RaggedBatch

# transformers matches this name by substring: it must not contain "sdpa", "flash", "flex", "paged" or "/".
ATTENTION_NAME = "loupe_probe"


@dataclass(frozen=True, slots=True)
class LayerQuery:
    """What one layer asked of the cache, enough to recompute its weights later.

    query    (H, D) last row, after RoPE
    scaling  what the model multiplies the scores by; never recomputed from the head width
    softcap  scores become softcap * tanh(scores / softcap); None where the model has none
    sink     (H,) extra logit that takes part in the softmax and has no key; None where the model has none
    mask     (K,) True where this layer may look; None for everywhere
    """

    query: Tensor
    scaling: float
    softcap: float | None
    sink: Tensor | None
    mask: Tensor | None

    @property
    def num_bytes(self) -> int:
        tensors = (self.query, self.mask)
        return sum(t.numel() * t.element_size() for t in tensors if t is not None)

    def of_row(self, row: int, query: Tensor, length: int) -> LayerQuery:
        """One session's part of a whole batch's, whose mask is (B, 1, 1, K)."""
        mask = None if self.mask is None else self.mask[row, 0, 0, :length].clone()
        return LayerQuery(query, self.scaling, self.softcap, self.sink, mask)


@dataclass(slots=True)
class ForwardPass:
    """What one forward of the model is doing; the attention function and the cache read it.

    stores        one per session in the batch
    past          tokens each store held before the forward
    num_new       tokens fed per session (1 in a decode step)
    keep_queries  whether to keep each session's last query
    weights_of    layers whose full weights are computed inside the call (replay only)
    read_only     the stores already hold these tokens: read them, write nothing
    keeps_cache   False: keys and values serve this forward alone, and reach no store
    stop_after    raise `LayersDone` after this layer; None runs the whole model
    observe       note which layers come through here, and whether their keys are the cached ones
    queries       per session: layer -> LayerQuery
    weights       layer -> (B, H, M, K)
    called        layers that came through here
    direct        whether the keys that reach attention are the cached ones (False for MLA, which expands them)
    ragged        the stores of a decode step of several sessions, where they can be read together
    asked         layer -> the query of every row of `ragged`, (B, H, D)
    shapes        the shapes of query, cached keys and cached values that were seen, lengths apart; with `observe`
    """

    stores: list[KVStore]
    past: list[int]
    num_new: int
    keep_queries: bool = True
    weights_of: frozenset[int] = frozenset()
    read_only: bool = False
    keeps_cache: bool = True
    stop_after: int | None = None
    observe: bool = False
    queries: list[dict[int, LayerQuery]] = field(default_factory=list)
    weights: dict[int, Tensor] = field(default_factory=dict)
    called: set[int] = field(default_factory=set)
    direct: bool = True
    ragged: RaggedBatch | None = None
    asked: dict[int, LayerQuery] = field(default_factory=dict)
    shapes: set[tuple[int, ...]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.queries = [{} for _ in self.stores]

    def hand_out(self) -> None:
        """Give every session its part of `asked`: one copy for all layers, so that no session keeps the batch alive."""
        if not self.asked:
            return
        whole = torch.stack([asked.query for asked in self.asked.values()], 1)  # (B, L, H, D)
        for row, past in enumerate(self.past):
            own = whole[row].clone().unbind(0)
            self.queries[row] = {
                layer: asked.of_row(row, query, past + self.num_new)
                for (layer, asked), query in zip(self.asked.items(), own, strict=True)
            }
        self.asked.clear()


class LayersDone(Exception):
    """Ends a replay once the layer that was asked for has been through attention."""


MaskFunction = Callable[..., Any]  # (batch, head, query, key) indices -> may look

_running = threading.local()  # one forward at a time per engine thread


@contextmanager
def running(forward_pass: ForwardPass) -> Iterator[None]:
    """Within this context, the model's forward finds `forward_pass`."""
    _running.current = forward_pass
    try:
        yield
    finally:
        _running.current = None


def current_pass() -> ForwardPass:
    """The forward that this thread is running."""
    found: ForwardPass | None = getattr(_running, "current", None)
    assert found is not None, "the model was called outside ModelRunner"
    return found


def install(model: PreTrainedModel) -> None:
    """Make `model` call this file's attention and mask functions."""
    AttentionInterface.register(ATTENTION_NAME, attend)
    AttentionMaskInterface.register(ATTENTION_NAME, build_mask)
    model.set_attn_implementation(ATTENTION_NAME)


def build_mask(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: int | Tensor = 0,
    kv_offset: int = 0,
    mask_function: MaskFunction = causal_mask_function,
    device: torch.device | str = "cpu",
    **_: object,
) -> Tensor | None:
    """The architecture's own pattern (causal, sliding, chunked) over each session's own positions.

    Returns (B, 1, M, K) bool, True where a query may look, or None where plain causality hides nothing
    from a single query, or where the whole chunk starts at position 0 and the kernel applies causality itself.
    """
    forward_pass = current_pass()
    if mask_function is causal_mask_function and (q_length == 1 or max(forward_pass.past) == 0):
        return None
    past = torch.tensor(forward_pass.past, device=device)
    rows = torch.arange(batch_size, device=device)[:, None, None, None]
    heads = torch.zeros(1, 1, 1, 1, dtype=torch.long, device=device)
    queries = (past[:, None] + torch.arange(q_length, device=device))[:, None, :, None]  # (B, 1, M, 1)
    keys = torch.arange(kv_length, device=device)[None, None, None, :]  # (1, 1, 1, K)
    allowed: Tensor = mask_function(rows, heads, queries, keys)
    return allowed.expand(batch_size, 1, q_length, kv_length)


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **_: object,
) -> tuple[Tensor, None]:
    """Attention of one layer, called by transformers.

    query (B, H, M, D) after RoPE; key, value (B, G, K, D) as the cache's update returned them.
    Returns (B, M, H, Dv) and no weights.
    """
    forward_pass = current_pass()
    layer = int(module.layer_idx)  # type: ignore[arg-type]
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    if forward_pass.observe:
        _observe(forward_pass, layer, query, key)
    if forward_pass.ragged is not None:
        if forward_pass.keep_queries:
            forward_pass.asked[layer] = LayerQuery(query[:, :, 0], scale, softcap, s_aux, attention_mask)
        together = forward_pass.ragged.attend(layer, query, attention_mask, scale, softcap, s_aux, alone=_fused)
        return together.transpose(1, 2), None
    outputs = []
    for row, (store, past) in enumerate(zip(forward_pass.stores, forward_pass.past, strict=True)):
        length = past + forward_pass.num_new
        if len(forward_pass.stores) == 1:  # what came in is this session's, exactly
            q, keys, values = query, key, value
        elif forward_pass.direct:
            q, (keys, values) = query[row : row + 1], (t.unsqueeze(0) for t in store.view(layer, length))
        else:
            q, keys, values = query[row : row + 1], key[row : row + 1, :, :length], value[row : row + 1, :, :length]
        mask = None if attention_mask is None else attention_mask[row : row + 1, :, :, :length]
        outputs.append(_fused(q, keys, values, mask, scale, softcap, s_aux))
        if forward_pass.keep_queries:
            forward_pass.queries[row][layer] = _last_query(q, mask, scale, softcap, s_aux)
        if layer in forward_pass.weights_of:
            forward_pass.weights[layer] = attention_weights(q, keys, mask, scale, softcap, s_aux)
    if forward_pass.stop_after == layer:
        raise LayersDone
    joined = outputs[0] if len(outputs) == 1 else torch.cat(outputs)  # (B, H, M, Dv)
    return joined.transpose(1, 2).contiguous(), None


def _observe(forward_pass: ForwardPass, layer: int, query: Tensor, key: Tensor) -> None:
    store = forward_pass.stores[0]
    cached, values = store.view(layer, forward_pass.past[0] + forward_pass.num_new)
    forward_pass.called.add(layer)
    forward_pass.shapes.add((*query.shape, *cached.shape, *values.shape))
    forward_pass.direct = forward_pass.direct and key.data_ptr() == cached.data_ptr()


def _last_query(
    query: Tensor, mask: Tensor | None, scaling: float, softcap: float | None, sink: Tensor | None
) -> LayerQuery:
    """The last row of `query` (1, H, M, D); cloned, so that it does not keep a whole chunk or batch alive."""
    last_mask = None if mask is None else mask[0, 0, -1].clone()
    return LayerQuery(query[0, :, -1].clone(), scaling, softcap, sink, last_mask)


def attention_weights(
    query: Tensor, key: Tensor, mask: Tensor | None, scaling: float, softcap: float | None, sink: Tensor | None
) -> Tensor:
    """Softmax rows in fp32. A row sums to 1, or to less where a sink takes its share.

    query (1, H, M, D), key (1, G, K, D), mask (1, 1, M, K) bool or None for plain causality. Returns (1, H, M, K).
    """
    num_new, kv_len = query.shape[2], key.shape[2]
    scores = _grouped(query.float(), key.shape[1]) @ key.float().unsqueeze(2).transpose(-1, -2) * scaling
    scores = scores.flatten(1, 2)  # (1, H, M, K)
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if mask is None and num_new > 1:
        mask = torch.ones(num_new, kv_len, dtype=torch.bool, device=key.device).tril(kv_len - num_new)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    if sink is None:
        return scores.softmax(-1)
    extra = sink.float().view(1, -1, 1, 1).expand(*scores.shape[:3], 1)
    return torch.cat([scores, extra], -1).softmax(-1)[..., :-1]


def row_weights(asked: LayerQuery, keys: Tensor) -> Tensor:
    """Weights (H, K) of one kept query over cached `keys` (G, K, D)."""
    mask = None if asked.mask is None else asked.mask[None, None, None, :]
    query = asked.query[None, :, None, :]
    return attention_weights(query, keys.unsqueeze(0), mask, asked.scaling, asked.softcap, asked.sink)[0, :, 0]


def _grouped(query: Tensor, num_kv_heads: int) -> Tensor:
    """(1, H, M, D) -> (1, G, H/G, M, D): query head h reads key-value head h // (H/G)."""
    rows, num_heads, num_new, width = query.shape
    return query.reshape(rows, num_kv_heads, num_heads // num_kv_heads, num_new, width)


def _fused(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    scaling: float,
    softcap: float | None,
    sink: Tensor | None,
) -> Tensor:
    """Attention output (1, H, M, Dv) of one session."""
    if softcap is not None or sink is not None:
        weights = attention_weights(query, key, mask, scaling, softcap, sink).to(value.dtype)
        return (_grouped(weights, key.shape[1]) @ value.unsqueeze(2)).flatten(1, 2)
    num_heads, num_new = query.shape[1], query.shape[2]
    if num_new == 1 and query.dtype != torch.float32:
        # The group of query heads that shares a key head becomes the query length: no key is repeated. SDPA's own
        # enable_gqa is several times slower at that in bf16 on CPU; in float32 it is the faster one.
        folded = query.view(1, key.shape[1], -1, query.shape[-1])
        out = F.scaled_dot_product_attention(folded, key, value, attn_mask=mask, scale=scaling)
        return out.reshape(1, num_heads, 1, value.shape[-1])
    causal = mask is None and num_new > 1
    grouped = num_heads != key.shape[1]
    return F.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, is_causal=causal, scale=scaling, enable_gqa=grouped
    )
