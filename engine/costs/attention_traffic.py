"""Operations per byte of the linear layers and of attention, and what unfused attention writes and reads.

More queries per key raise attention's intensity: more heads per key head, more query tokens, a smaller cache.
More tokens per weight raise the linear layers'.
"""

from __future__ import annotations

import math


def linear_intensity(
    tokens: int, rows: int, columns: int, *, weight_dtype_bytes: float = 2.0, activation_bytes: float = 2.0
) -> float:
    """Operations per byte of a (rows, columns) product with `tokens` tokens; near 2·tokens / bytes per weight."""
    inputs_and_outputs = activation_bytes * tokens * (rows + columns)
    return 2 * tokens * rows * columns / (inputs_and_outputs + weight_dtype_bytes * rows * columns)


def attention_intensity(kv_len: int, queries: int, *, group: int = 1, kv_dtype_bytes: float = 2.0) -> float:
    """Operations per byte of attention: `queries` query tokens over `kv_len` keys, `group` query heads per key head."""
    return (2 / kv_dtype_bytes) * group * kv_len * queries / (kv_len + group * queries)


def latent_intensity(
    kv_len: int, queries: int, *, num_heads: int, kv_rank: int, rope: int, kv_dtype_bytes: float = 2.0
) -> float:
    """The same for latent attention in the compressed space: all heads read one latent."""
    flops = 2 * num_heads * queries * kv_len * (2 * kv_rank + rope)
    cache = kv_len * (kv_rank + rope)
    inputs_and_outputs = num_heads * queries * (2 * kv_rank + rope)
    return flops / (kv_dtype_bytes * (cache + inputs_and_outputs))


def score_bytes(length: int, dtype_bytes: int = 2) -> int:
    """Bytes per head that unfused attention moves for its squares: scores written, read, weights written, read."""
    return 4 * length * length * dtype_bytes


def input_output_bytes(length: int, head_dim: int, dtype_bytes: int = 2) -> int:
    """Bytes per head of query, key, value and output, each moved once: the least any attention can move."""
    return 4 * length * head_dim * dtype_bytes


def naive_bytes(length: int, head_dim: int, dtype_bytes: int = 2) -> int:
    """Bytes per head that unfused attention moves."""
    return score_bytes(length, dtype_bytes) + input_output_bytes(length, head_dim, dtype_bytes)


def tiled_bytes(length: int, head_dim: int, *, query_rows: int, dtype_bytes: int = 2) -> int:
    """Bytes per head of attention in tiles of `query_rows` queries, if keys and values are read anew for each tile."""
    tiles = math.ceil(length / query_rows)
    return dtype_bytes * length * head_dim * (2 + 2 * tiles)  # query and output once, key and value per tile


def square_share(length: int, head_dim: int) -> float:
    """Share of unfused attention's traffic that its squares are."""
    return length / (length + head_dim)
