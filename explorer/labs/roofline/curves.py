"""A step's bounds against the batch, and where they turn: found on the curves themselves.

Experts, windows and latents are in the functions that draw the curves, so no turn needs a formula of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from engine.costs import ModelShape
from engine.costs.bytes import PRECISIONS, step_bytes, streamed_parameters
from engine.costs.flops import decode_flops
from engine.costs.step_time import general_s, roofline_s
from explorer.labs.roofline.lower_bounds import Levers, Rates, with_attention

BATCHES = tuple(sorted({round(2 ** (i / 2)) for i in range(23)}))  # 1 to 2,048
FAR = 2**40  # beyond any batch and any context


@dataclass(frozen=True, slots=True)
class BatchCurve:
    """Seconds of a step by batch, each bound; empty where no peak is published.

    critical  batch at which the linear layers' arithmetic takes as long as reading their weights; infinite: never
    context   tokens per sequence above which the whole step waits for memory at any batch; infinite: never
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
        BATCHES,
        memory,
        tuple(f / peak for f in flops),
        general,
        strict,
        _critical(built, peak, bandwidth, weight_size),
        _context(built, peak, bandwidth, cache_size),
    )


def _critical(shape: ModelShape, peak: float, bandwidth: float, weight_size: float) -> float:
    """A larger batch multiplies more and, with experts, reads more of the weights."""

    def turned(batch: int) -> bool:
        streamed = streamed_parameters(shape, tokens=batch) * weight_size
        return 2 * batch * shape.parameters.matmul / peak >= streamed / bandwidth

    return _first(turned)


def _context(shape: ModelShape, peak: float, bandwidth: float, cache_size: float) -> float:
    """One sequence more brings its cache to read and its arithmetic to do: from here on the first takes longer."""

    def turned(tokens: int) -> bool:
        moved = shape.kv_bytes(tokens, cache_size) + shape.kv_bytes_per_token(cache_size)
        return moved / bandwidth >= decode_flops(shape, tokens + 1) / peak

    return _first(turned)


def _first(turned: Callable[[int], bool]) -> float:
    """The first number for which something is true that then stays true; infinite where it never is."""
    if not turned(FAR):
        return math.inf
    low, high = 0, FAR  # true at high, and false at low unless that is 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if turned(middle) else (middle, high)
    return high
