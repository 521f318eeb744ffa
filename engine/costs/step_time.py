"""How long a decode step takes at least, from rates alone.

Rates are those of all devices together: bandwidth in bytes per second, peak in operations per second.
`kv_bytes` is the cache of one sequence, `weights` the bytes of the weights that a step reads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Throughput:
    """Tokens per second: for each request, and for all of them together."""

    per_request: float
    total: float


def memory_bound_s(*, batch: int, kv_bytes: float, weights: float, bandwidth: float) -> float:
    """Seconds to move what a step must read, at full bandwidth: nothing is faster, whatever it computes with."""
    return (batch * kv_bytes + weights) / bandwidth


def compute_bound_s(*, flops: float, peak: float) -> float:
    """Seconds to do the arithmetic at full rate."""
    return flops / peak


def general_s(
    *, batch: int, kv_bytes: float, weights: float, parameters: float, bandwidth: float, peak: float
) -> float:
    """Seconds when attention waits for memory and the linear part is bound by whichever is slower.

    Not a strict bound: it lets attention and the linear part follow each other, never overlap.
    """
    return batch * kv_bytes / bandwidth + max(2 * batch * parameters / peak, weights / bandwidth)


def roofline_s(*, flops: float, moved: float, bandwidth: float, peak: float) -> float:
    """Seconds when arithmetic and memory overlap perfectly: the strict bound."""
    return max(flops / peak, moved / bandwidth)


def ridge(peak: float, bandwidth: float) -> float:
    """Operations per byte at which a machine is as long busy computing as reading."""
    return peak / bandwidth


def critical_batch(peak: float, bandwidth: float, weight_dtype_bytes: float = 2.0) -> float:
    """Tokens in a step above which its linear layers wait for arithmetic and no longer for memory."""
    return peak * weight_dtype_bytes / (2 * bandwidth)


def critical_batch_of_matrix(peak: float, bandwidth: float, rows: int, columns: int) -> float:
    """The same for one matrix in two-byte numbers, its inputs and outputs counted; infinite where it is too small."""
    intensity = ridge(peak, bandwidth)
    share = intensity * (1 / rows + 1 / columns)
    return intensity / (1 - share) if share < 1 else math.inf


def critical_batch_of_experts(dense_critical_batch: float, count: int, active: int) -> float:
    """Tokens in a step above which a mixture of experts waits for arithmetic, once all experts are read."""
    return dense_critical_batch * count / active


def memory_bound_context(
    *, parameters: float, kv_bytes_per_token: float, bandwidth: float, peak: float, attention_flops: float = 0.0
) -> float:
    """Tokens per sequence above which a step as a whole is bound by memory at any batch.

    attention_flops  operations per cached token; with them the answer is infinite where attention itself is
                     bound by arithmetic
    """
    seconds_per_token = kv_bytes_per_token / bandwidth - attention_flops / peak
    return (2 * parameters / peak) / seconds_per_token if seconds_per_token > 0 else math.inf


def throughput(batch: int, step_s: float) -> Throughput:
    """Tokens per second when `batch` requests step together."""
    return Throughput(1 / step_s, batch / step_s)
