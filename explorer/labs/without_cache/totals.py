"""What a race cost each loop, step by step and in all, beside what the formulas say it must have been.

Positions and pairs were counted in the loops; operations follow from the positions by formula; times were measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Literal

from engine.costs.flops import decode_flops, prefill_flops
from engine.costs.positions import attention_pairs, cached_positions, uncached_positions
from engine.costs.shape import ModelShape

if TYPE_CHECKING:
    from engine.studies.uncached import RaceStep, Turn

Quantity = Literal["positions", "pairs", "flops", "ms"]
QUANTITIES: tuple[Quantity, ...] = ("positions", "pairs", "flops", "ms")


@dataclass(frozen=True, slots=True)
class Costs:
    """One loop's costs, one entry per step. `flops` is empty where the architecture's arithmetic is not known."""

    positions: tuple[int, ...]
    pairs: tuple[int, ...]
    flops: tuple[int, ...]
    ms: tuple[float, ...]

    def of(self, quantity: Quantity) -> tuple[float, ...]:
        """One entry per step."""
        return {"positions": self.positions, "pairs": self.pairs, "flops": self.flops, "ms": self.ms}[quantity]

    def running(self, quantity: Quantity) -> tuple[float, ...]:
        """The sum up to and with each step."""
        return tuple(accumulate(self.of(quantity)))

    def total(self, quantity: Quantity) -> float:
        """The sum over all steps."""
        return sum(self.of(quantity))


@dataclass(frozen=True, slots=True)
class Bill:
    """A race of `steps` steps after a prompt of `prompt_len` tokens, and what each loop paid."""

    prompt_len: int
    cached: Costs
    uncached: Costs

    @property
    def steps(self) -> int:
        return len(self.cached.positions)

    @property
    def formula(self) -> Formula:
        """What the counts must be."""
        return formula(self.prompt_len, self.steps)

    @property
    def counts_agree(self) -> bool:
        """Whether what the loops counted is what the formulas say."""
        counted = (
            self.uncached.total("positions"),
            self.cached.total("positions"),
            self.uncached.total("pairs"),
            self.cached.total("pairs"),
        )
        expected = self.formula
        return counted == (expected.uncached, expected.cached, expected.uncached_pairs, expected.cached_pairs)

    def ratio(self, quantity: Quantity) -> float:
        """How many times the cached loop's total the uncached one's is; 0 where there is nothing to compare."""
        cached = self.cached.total(quantity)
        return self.uncached.total(quantity) / cached if cached else 0.0

    @property
    def ahead_from(self) -> int | None:
        """The first step from which on the cached loop's total time stays the lower; None where it ends behind."""
        both = zip(self.cached.running("ms"), self.uncached.running("ms"), strict=True)
        behind = [step for step, (cached, uncached) in enumerate(both) if cached >= uncached]
        first = behind[-1] + 1 if behind else 0
        return first if first < self.steps else None

    @property
    def slower_steps(self) -> tuple[int, ...]:
        """Steps whose cached forward took longer than the uncached one."""
        return tuple(i for i, (a, b) in enumerate(zip(self.cached.ms, self.uncached.ms, strict=True)) if a > b)


@dataclass(frozen=True, slots=True)
class Formula:
    """Positions N·P + N(N-1)/2 and P + N - 1, and the query-key pairs of one layer and head, causal."""

    uncached: int
    cached: int
    uncached_pairs: int
    cached_pairs: int


def formula(prompt_len: int, new_tokens: int) -> Formula:
    """The counts of P prompt tokens and N new ones, the prefill in both."""
    pairs = attention_pairs(prompt_len, new_tokens)
    return Formula(
        uncached_positions(prompt_len, new_tokens),
        cached_positions(prompt_len, new_tokens),
        pairs.uncached_causal,
        pairs.cached_causal,
    )


def bill(steps: Sequence[RaceStep], prompt_len: int, shape: ModelShape) -> Bill:
    """The costs of a race."""
    cached = _costs([step.cached for step in steps], lambda fed, kv_len: _flops(shape, fed, kv_len))
    uncached = _costs([step.uncached for step in steps], lambda fed, kv_len: _flops(shape, fed, kv_len))
    return Bill(prompt_len, cached, uncached)


def knows_arithmetic(shape: ModelShape) -> bool:
    """Whether the shape holds more than what a cache depends on."""
    return shape.knows_weights


def _costs(turns: Sequence[Turn], flops: Callable[[int, int], int | None]) -> Costs:
    prompt_len = turns[0].positions if turns else 0
    known = [flops(turn.positions, prompt_len + step) for step, turn in enumerate(turns)]
    return Costs(
        tuple(turn.positions for turn in turns),
        tuple(turn.pairs for turn in turns),
        tuple(f for f in known if f is not None),
        tuple(turn.forward_ms for turn in turns),
    )


def _flops(shape: ModelShape, fed: int, kv_len: int) -> int | None:
    """Operations of a forward that feeds the last `fed` of `kv_len` tokens and makes one row of logits."""
    if not knows_arithmetic(shape):
        return None
    if fed == kv_len:
        return prefill_flops(shape, fed, last_logits_only=True)
    assert fed == 1, "a decode step feeds one token"
    return decode_flops(shape, kv_len, absorbed=False)
