"""The floor of a step under the levers the literature names: pure arithmetic over the cost model.

Sharding is perfect here: n devices read and multiply n times as fast, and talking to each other is free. Real
ones are slower, so this stays a floor.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from engine.costs import ModelShape
from engine.costs.bytes import PRECISIONS, streamed_parameters, weight_bytes
from engine.costs.flops import decode_flops
from engine.costs.speculation import tokens_per_pass
from engine.costs.step_time import roofline_s
from engine.costs.variants import with_key_heads, with_latent
from engine.measure.hardware import Hardware
from explorer.say import words_beside

if TYPE_CHECKING:
    from engine.measure.machine_rates import MachineRates

say = words_beside(__file__)

Attention = Literal["as built", "a key head per query head", "groups of 8", "one key head", "latent"]
ATTENTIONS: tuple[Attention, ...] = ("latent", "groups of 8", "one key head", "a key head per query head")
SHORT = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}


@dataclass(frozen=True, slots=True)
class Rates:
    """What one device does: published, or measured here.

    peaks    operations per second by number format
    memory   bytes; None where it is not known
    said     where the numbers come from, in words
    """

    name: str
    bandwidth: float
    peaks: Mapping[str, float]
    memory: float | None
    said: str
    measured: bool = False

    def peak(self, precision: str) -> float | None:
        """Operations per second for weights of a precision; None: not published."""
        if self.measured:
            return next(iter(self.peaks.values()))
        return Hardware(self.name, self.peaks, self.bandwidth, 0, self.said).best_peak(precision)


@dataclass(frozen=True, slots=True)
class Levers:
    """What can be moved. `drafted` is the tokens a small model proposes for each pass; 0 is no speculation."""

    weights: str = "bf16"
    cache: str = "bf16"
    devices: int = 1
    batch: int = 1
    drafted: int = 0
    acceptance: float = 0.8
    draft_cost: float = 0.05
    attention: Attention = "as built"


@dataclass(frozen=True, slots=True)
class Floor:
    """The least a step can take, and what it is made of.

    weights     bytes to hold; `streamed` is what a pass reads of them
    cache       bytes of all sequences' caches
    moved, flops  of one pass
    memory_s, compute_s  to move the bytes, to do the arithmetic; None where no peak is published
    token_s     per token of one request, drafts counted
    rate        tokens per second of all requests together
    """

    weights: float
    streamed: float
    cache: float
    moved: float
    flops: float
    memory_s: float
    compute_s: float | None
    token_s: float
    rate: float

    @property
    def bound(self) -> str:
        """What the pass waits for."""
        return "compute" if self.compute_s is not None and self.compute_s > self.memory_s else "memory"

    @property
    def held(self) -> float:
        """Bytes of weights and caches together."""
        return self.weights + self.cache


def floor_of(shape: ModelShape, rates: Rates, context: int, levers: Levers) -> Floor:
    """The floor of a decode step with `context` tokens cached in every sequence."""
    built = with_attention(shape, levers.attention)
    weight_size, cache_size = PRECISIONS[levers.weights], PRECISIONS[levers.cache]
    tokens = levers.batch * (levers.drafted + 1)
    streamed = streamed_parameters(built, tokens=tokens) * weight_size
    cache = levers.batch * built.kv_bytes(context, cache_size)
    moved = streamed + cache + tokens * built.kv_bytes_per_token(cache_size)
    flops = decode_flops(built, context + 1, batch=tokens)
    bandwidth, peak = levers.devices * rates.bandwidth, rates.peak(levers.weights)
    arithmetic = flops / (levers.devices * peak) if peak else None
    one_pass = (
        roofline_s(flops=flops, moved=moved, bandwidth=bandwidth, peak=levers.devices * peak)
        if peak
        else moved / bandwidth
    )
    round_s = one_pass * (1 + levers.drafted * levers.draft_cost)
    token_s = round_s / tokens_per_pass(levers.acceptance, levers.drafted)
    return Floor(
        weights=weight_bytes(built, weight_size),
        streamed=streamed,
        cache=cache,
        moved=moved,
        flops=flops,
        memory_s=moved / bandwidth,
        compute_s=arithmetic,
        token_s=token_s,
        rate=levers.batch / token_s,
    )


def with_attention(shape: ModelShape, attention: Attention) -> ModelShape:
    """The same model with another kind of attention."""
    if attention == "as built":
        return shape
    if attention == "latent":
        return with_latent(shape)
    heads = shape.num_heads
    key_heads = {"a key head per query head": heads, "groups of 8": math.ceil(heads / 8), "one key head": 1}[attention]
    return with_key_heads(shape, key_heads)


def devices_to_hold(floor: Floor, rates: Rates) -> int | None:
    """Devices whose memory together holds weights and caches; None where memory is not known."""
    return math.ceil(floor.held / rates.memory) if rates.memory else None


def published(hardware: Hardware) -> Rates:
    """A device of the table."""
    return Rates(hardware.name, hardware.bandwidth, hardware.peak, hardware.memory or None, hardware.source)


def measured(machine: MachineRates) -> Rates:
    """The machine this runs on: its best runs."""
    short = SHORT.get(machine.dtype, machine.dtype)
    said = say("lower_bounds.said", dtype=machine.dtype, device=machine.device, threads=machine.threads, at=machine.at)
    peaks = {short: machine.gemm_flops_per_s.best}
    return Rates(say("lower_bounds.here"), machine.gemv_bytes_per_s.best, peaks, None, said, measured=True)
