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

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import causal_mask_function

from engine.forward.forward_pass import ForwardPass, LayerQuery, LayersDone, current_pass
from engine.forward.kv_store import KVStore

# transformers matches this name by substring: it must not contain "sdpa", "flash", "flex", "paged" or "/".
ATTENTION_NAME = "loupe_probe"
COPIED_BYTES = 8_000_000  # keys of all layers, up to which rows are found in one product over a copy of them
ONE_THREAD = 65_536  # multiplications that BLAS does in the thread that asks; waking another costs more than a row


MaskFunction = Callable[..., Any]  # (batch, head, query, key) indices -> may look


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
    forward_pass.let_others_in()
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
            forward_pass.weights[layer] = _weights(forward_pass.weights_of_head, q, keys, mask, scale, softcap, s_aux)
        forward_pass.on_attention(layer, module, q, keys, values, outputs[-1], mask)
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


def _weights(
    head: int | None,
    query: Tensor,
    keys: Tensor,
    mask: Tensor | None,
    scaling: float,
    softcap: float | None,
    sink: Tensor | None,
) -> Tensor:
    """`attention_weights` of every head, or of one: all heads of a long prompt would not fit."""
    if head is not None:
        group = head // (query.shape[1] // keys.shape[1])
        query, keys = query[:, head : head + 1], keys[:, group : group + 1]
        sink = None if sink is None else sink[head : head + 1]
    return attention_weights(query, keys, mask, scaling, softcap, sink)


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

    query (B, H, M, D), key (B, G, K, D), mask (B, 1, M, K) bool or None for plain causality. Returns (B, H, M, K).
    """
    num_new, kv_len = query.shape[2], key.shape[2]
    rows = _grouped(query.float(), key.shape[1]).flatten(2, 3)  # (B, G, H/G * M, D): no key is repeated
    scores = (rows @ key.float().transpose(-1, -2) * scaling).view(*query.shape[:3], kv_len)  # (B, H, M, K)
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


def rows_of_store(asked: Sequence[LayerQuery], store: KVStore, length: int) -> NDArray[np.float32]:
    """Weights (L, H, K) of the queries that a step kept, over the first `length` tokens of its session's cache."""
    keys = store.keys_of_layers(length)
    if keys is not None and keys.dtype == torch.float32 and not keys.is_cuda and _alike(asked):
        return _rows_on_cpu(asked, keys.numpy())
    views = [store.view(layer, length)[0] for layer in range(store.num_layers)]
    return rows_of_layers(asked, views).cpu().numpy()


def _rows_on_cpu(asked: Sequence[LayerQuery], keys: NDArray[np.float32]) -> NDArray[np.float32]:
    """The same in place over keys (L, G, K, D): no copy of them, and no second thread."""
    layers, groups, length, width = keys.shape
    query = np.stack([one.query.numpy() for one in asked]).reshape(layers, groups, -1, width)  # (L, G, H/G, D)
    weights = np.empty((*query.shape[:3], length), dtype=np.float32)  # (L, G, H/G, K)
    step = max(1, ONE_THREAD // (query.shape[2] * width))
    for start in range(0, length, step):
        part = keys[:, :, start : start + step].transpose(0, 1, 3, 2)  # (L, G, D, up to `step`)
        np.matmul(query, part, out=weights[..., start : start + step])
    weights *= np.float32(asked[0].scaling)
    weights -= weights.max(axis=-1, keepdims=True)
    np.exp(weights, out=weights)
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights.reshape(layers, -1, length)


def rows_of_layers(asked: Sequence[LayerQuery], keys: Sequence[Tensor]) -> Tensor:
    """Weights (L, H, K) of the queries that a step kept, each over its layer's cached keys (G, K, D)."""
    if not _go_together(asked, keys):
        return torch.stack([row_weights(one, layer) for one, layer in zip(asked, keys, strict=True)])
    query = torch.stack([one.query for one in asked]).unsqueeze(2)  # (L, H, 1, D)
    return attention_weights(query, torch.stack(list(keys)), None, asked[0].scaling, None, None)[:, :, 0]


def _go_together(asked: Sequence[LayerQuery], keys: Sequence[Tensor]) -> bool:
    """Whether one product serves all layers. Thirty small ones take five times as long; long keys cost more to copy."""
    copied = sum(layer.numel() * layer.element_size() for layer in keys)
    return _alike(asked) and len({layer.shape for layer in keys}) == 1 and copied <= COPIED_BYTES


def _alike(asked: Sequence[LayerQuery]) -> bool:
    """Whether all layers do the plain softmax of the same product."""
    plain = all(one.softcap is None and one.sink is None and one.mask is None for one in asked)
    return plain and len({(one.scaling, one.query.shape) for one in asked}) == 1


def _grouped(query: Tensor, num_kv_heads: int) -> Tensor:
    """(B, H, M, D) -> (B, G, H/G, M, D): query head h reads key-value head h // (H/G)."""
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
