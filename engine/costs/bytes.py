"""Bytes: of weights, of a quantised number, and what one decode step has to move.

A step reads every weight it multiplies with once, however many sequences share it, and every sequence's own
cache. Activations and logits are left out: they stay in the processor's caches.
"""

from __future__ import annotations

import math
from types import MappingProxyType

from engine.costs.shape import ModelShape


def element_bytes(bits: float, group: int = 1, *, scale_bits: int = 0, zero_bits: int = 0) -> float:
    """Bytes per number when every `group` numbers share a scale and maybe a zero point."""
    return (bits + (scale_bits + zero_bits) / group) / 8


PRECISIONS: MappingProxyType[str, float] = MappingProxyType(
    {
        "fp32": 4.0,
        "bf16": 2.0,
        "fp16": 2.0,
        "fp8": 1.0,
        "int8": 1.0,
        "q8_0": element_bytes(8, 32, scale_bits=16),
        "int4, groups of 64": element_bytes(4, 64, scale_bits=16, zero_bits=16),
        "q4_0": element_bytes(4, 32, scale_bits=16),
    }
)  # bytes per number


def weight_bytes(shape: ModelShape, dtype_bytes: float) -> int:
    """Bytes of all parameters: what must be held."""
    return math.ceil(shape.parameters.total * dtype_bytes)


def expected_experts(count: int, active: int, tokens: int) -> float:
    """Distinct experts of one layer that `tokens` tokens meet together, if all experts are equally likely."""
    return count * (1 - (1 - active / count) ** tokens)


def streamed_parameters(shape: ModelShape, *, tokens: int = 1) -> float:
    """Parameters one step reads for `tokens` tokens: with experts, more of them the more tokens there are."""
    parameters, experts = shape.parameters, shape.experts
    if experts is None:
        return parameters.matmul
    distinct = expected_experts(experts.count, experts.active, tokens)
    return parameters.matmul + experts.layers * parameters.expert * (distinct - experts.active)


def step_bytes(
    shape: ModelShape, cached: int, *, batch: int = 1, weight_dtype_bytes: float, kv_dtype_bytes: float
) -> int:
    """Bytes one decode step moves: weights once, each sequence's cache read, one token each written.

    cached  tokens in each sequence's cache before the step
    """
    weights = streamed_parameters(shape, tokens=batch) * weight_dtype_bytes
    read = shape.kv_bytes(cached, kv_dtype_bytes)
    written = shape.kv_bytes_per_token(kv_dtype_bytes)
    return math.ceil(weights) + batch * (read + written)


def prefill_bytes(shape: ModelShape, prompt_len: int, *, weight_dtype_bytes: float, kv_dtype_bytes: float) -> int:
    """Bytes one sweep over a prompt moves at least: weights once, each token's keys and values written."""
    weights = streamed_parameters(shape, tokens=prompt_len) * weight_dtype_bytes
    return math.ceil(weights) + prompt_len * shape.kv_bytes_per_token(kv_dtype_bytes)
