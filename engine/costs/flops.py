"""Arithmetic of a step: two operations for every weight a token meets, and attention, which grows with context.

Softmax, norms and rotations are left out: less than two percent. `kv_len` counts the keys a query sees, the
new token's own included.
"""

from __future__ import annotations

from engine.costs.shape import ModelShape


def flops_per_pair(shape: ModelShape, *, absorbed: bool = True) -> int:
    """Operations for one query meeting one key in one layer, all heads: the score, and the value's share.

    absorbed  with latent attention, queries are moved into the compressed space (what a decode kernel does);
              otherwise keys and values are expanded first (what a prefill does)
    """
    if shape.latent is None:
        return 4 * shape.num_heads * shape.head_dim
    latent = shape.latent
    widths = 2 * latent.kv_rank + latent.rope if absorbed else latent.nope + latent.rope + latent.value
    return 2 * shape.num_heads * widths


def visible_keys(shape: ModelShape, kv_len: int) -> int:
    """Keys one query meets, summed over the layers: a windowed layer shows its window at most."""
    if shape.window is None:
        return shape.num_layers * kv_len
    full = shape.num_layers - shape.window.layers
    return full * kv_len + shape.window.layers * min(kv_len, shape.window.size)


def prompt_pairs(shape: ModelShape, prompt_len: int, *, causal: bool = True) -> int:
    """Query-key pairs of a prompt, summed over the layers; full squares where a kernel computes the masked half."""
    if not causal:
        return shape.num_layers * prompt_len**2
    triangle = prompt_len * (prompt_len + 1) // 2
    if shape.window is None:
        return shape.num_layers * triangle
    beyond = max(0, prompt_len - shape.window.size)
    return shape.num_layers * triangle - shape.window.layers * (beyond * (beyond + 1) // 2)


def decode_flops(shape: ModelShape, kv_len: int, *, batch: int = 1, absorbed: bool = True) -> int:
    """Operations of one decode step for `batch` sequences of this length."""
    pairs = visible_keys(shape, kv_len)
    return batch * (2 * shape.parameters.matmul + flops_per_pair(shape, absorbed=absorbed) * pairs)


def prefill_flops(
    shape: ModelShape, prompt_len: int, *, cached: int = 0, causal: bool = True, last_logits_only: bool = False
) -> int:
    """Operations of one sweep over a prompt, logits for every position unless only the last one's are wanted.

    cached  tokens of it that the cache holds already; only those behind them are run
    """
    new = prompt_len - cached
    linear = 2 * shape.parameters.matmul * new
    if last_logits_only:
        linear -= 2 * shape.parameters.head * (new - 1)
    pairs = prompt_pairs(shape, prompt_len, causal=causal) - prompt_pairs(shape, cached, causal=causal)
    return linear + flops_per_pair(shape, absorbed=False) * pairs
