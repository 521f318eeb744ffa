"""The two phases of a request by formula: operations, bytes, and the time either of them takes at least.

A sweep over a prompt reads every weight once for all its tokens; decode reads them once for every token. Bytes are
weights, and keys and values: written once by a sweep, read whole by every turn. Activations are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from engine.costs.bytes import step_bytes, streamed_parameters
from engine.costs.flops import decode_flops, prefill_flops
from engine.costs.shape import ModelShape
from engine.costs.step_time import compute_bound_s, ridge, roofline_s

Bound = Literal["memory", "compute"]
FAR = 1 << 24  # tokens: no prompt is longer


@dataclass(frozen=True, slots=True)
class Rates:
    """What a machine does at best: bytes and operations per second, and who says so."""

    name: str
    bandwidth: float
    peak: float
    source: str

    @property
    def ridge(self) -> float:
        """Operations per byte above which it waits for its arithmetic."""
        return ridge(self.peak, self.bandwidth)


@dataclass(frozen=True, slots=True)
class Sizes:
    """A model as it is held: its shape, and bytes per weight and per cached number."""

    shape: ModelShape
    weight_bytes: float
    kv_bytes: float


@dataclass(frozen=True, slots=True)
class Forward:
    """One forward: operations, and bytes it has to move."""

    flops: float
    moved: float

    def least_s(self, rates: Rates) -> float:
        """Seconds at full rates, arithmetic and memory overlapping perfectly."""
        return roofline_s(flops=self.flops, moved=self.moved, bandwidth=rates.bandwidth, peak=rates.peak)


@dataclass(frozen=True, slots=True)
class Phase:
    """All forwards of a phase. `tokens` is what goes through the model."""

    name: Literal["prefill", "decode"]
    tokens: int
    forwards: tuple[Forward, ...]

    @property
    def flops(self) -> float:
        return sum(forward.flops for forward in self.forwards)

    @property
    def moved(self) -> float:
        return sum(forward.moved for forward in self.forwards)

    @property
    def intensity(self) -> float:
        """Operations per byte; 0 where nothing is run."""
        return self.flops / self.moved if self.forwards else 0.0

    def memory_s(self, rates: Rates) -> float:
        """Seconds to move the bytes at full bandwidth."""
        return self.moved / rates.bandwidth

    def compute_s(self, rates: Rates) -> float:
        """Seconds to do the arithmetic at full rate."""
        return compute_bound_s(flops=self.flops, peak=rates.peak)

    def least_s(self, rates: Rates) -> float:
        """Seconds at least: each forward waits for whichever is slower."""
        return sum(forward.least_s(rates) for forward in self.forwards)

    def bound(self, rates: Rates) -> Bound:
        """What the phase waits for, taken as a whole."""
        return "compute" if self.intensity >= rates.ridge else "memory"


@dataclass(frozen=True, slots=True)
class Request:
    """P prompt tokens and N new ones, priced."""

    prompt_len: int
    new_tokens: int
    prefill: Phase
    decode: Phase

    @property
    def phases(self) -> tuple[Phase, Phase]:
        return self.prefill, self.decode

    def least_s(self, rates: Rates) -> float:
        """Seconds from the prompt to the last token, at least."""
        return sum(phase.least_s(rates) for phase in self.phases)


def request(sizes: Sizes, prompt_len: int, new_tokens: int) -> Request:
    """The price of a request: one sweep, then N - 1 turns, the first new token coming from the sweep."""
    sweep = Phase("prefill", prompt_len, (sweep_of(sizes, prompt_len),))
    turns = Phase("decode", new_tokens - 1, tuple(_turns(sizes, prompt_len, new_tokens)))
    return Request(prompt_len, new_tokens, sweep, turns)


def sweep_of(sizes: Sizes, tokens: int) -> Forward:
    """One forward over `tokens` tokens onto an empty cache, that makes one row of logits."""
    shape = sizes.shape
    weights = streamed_parameters(shape, tokens=tokens) * sizes.weight_bytes
    written = tokens * shape.kv_bytes_per_token(sizes.kv_bytes)
    return Forward(prefill_flops(shape, tokens, last_logits_only=True), weights + written)


def _turns(sizes: Sizes, prompt_len: int, new_tokens: int) -> Iterator[Forward]:
    for cached in range(prompt_len, prompt_len + new_tokens - 1):
        moved = step_bytes(sizes.shape, cached, weight_dtype_bytes=sizes.weight_bytes, kv_dtype_bytes=sizes.kv_bytes)
        yield Forward(decode_flops(sizes.shape, cached + 1), moved)


def turning_prompt(sizes: Sizes, rates: Rates) -> float:
    """The shortest prompt whose sweep waits for arithmetic and no longer for memory; infinite where none does."""

    def waits_for_arithmetic(tokens: int) -> bool:
        forward = sweep_of(sizes, tokens)
        return forward.flops * rates.bandwidth >= forward.moved * rates.peak

    if not waits_for_arithmetic(FAR):
        return math.inf
    low, high = 0, FAR  # of prompts, intensity only grows with length
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if waits_for_arithmetic(middle) else (middle, high)
    return high
