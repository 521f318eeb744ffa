"""A step's bounds against the batch."""

from __future__ import annotations

from dataclasses import dataclass

from engine.costs import ModelShape
from engine.costs.bytes import PRECISIONS, step_bytes, streamed_parameters
from engine.costs.flops import decode_flops, flops_per_pair
from engine.costs.step_time import (
    critical_batch,
    critical_batch_of_experts,
    general_s,
    memory_bound_context,
    roofline_s,
)
from explorer.labs.roofline.lower_bounds import Levers, Rates, with_attention

BATCHES = tuple(sorted({round(2 ** (i / 2)) for i in range(23)}))  # 1 to 2,048


@dataclass(frozen=True, slots=True)
class BatchCurve:
    """Seconds of a step by batch, each bound; empty where no peak is published.

    critical  batch at which the linear layers stop waiting for memory
    context   tokens per sequence above which the whole step waits for memory at any batch
    """

    batches: tuple[int, ...]
    memory: tuple[float, ...]
    arithmetic: tuple[float, ...]
    general: tuple[float, ...]
    strict: tuple[float, ...]
    critical: float | None
    context: float | None


def batch_curve(shape: ModelShape, rates: Rates, context: int, levers: Levers) -> BatchCurve:
    """The bounds of a step for 1 to 2,048 sequences of `context` tokens."""
    built = with_attention(shape, levers.attention)
    weight_size, cache_size = PRECISIONS[levers.weights], PRECISIONS[levers.cache]
    bandwidth, peak = levers.devices * rates.bandwidth, rates.peak(levers.weights)
    sizes = {"weight_dtype_bytes": weight_size, "kv_dtype_bytes": cache_size}
    moved = [step_bytes(built, context, batch=batch, **sizes) for batch in BATCHES]
    memory = tuple(m / bandwidth for m in moved)
    if not peak:
        return BatchCurve(BATCHES, memory, (), (), (), None, None)
    peak *= levers.devices
    flops = [decode_flops(built, context + 1, batch=batch) for batch in BATCHES]
    general = tuple(
        general_s(
            batch=batch,
            kv_bytes=built.kv_bytes(context, cache_size) + built.kv_bytes_per_token(cache_size),  # read, and written
            weights=streamed_parameters(built, tokens=batch) * weight_size,
            parameters=built.parameters.matmul,
            bandwidth=bandwidth,
            peak=peak,
        )
        for batch in BATCHES
    )
    strict = tuple(
        roofline_s(flops=f, moved=m, bandwidth=bandwidth, peak=peak) for f, m in zip(flops, moved, strict=True)
    )
    return BatchCurve(
        BATCHES, memory, tuple(f / peak for f in flops), general, strict,
        _critical(built, peak, bandwidth, weight_size),
        memory_bound_context(
            parameters=built.parameters.matmul, kv_bytes_per_token=built.kv_bytes_per_token(cache_size),
            bandwidth=bandwidth, peak=peak, attention_flops=built.num_layers * flops_per_pair(built),
        ),
    )  # fmt: skip


def _critical(shape: ModelShape, peak: float, bandwidth: float, weight_size: float) -> float:
    dense = critical_batch(peak, bandwidth, weight_size)
    experts = shape.experts
    return critical_batch_of_experts(dense, experts.count, experts.active) if experts else dense
