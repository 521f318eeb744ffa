"""Time several things in turn, and summarise what was seen."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

Work = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Timed:
    """Milliseconds of one variant, one number per round.

    best    the least disturbed round: what the code can do
    median  what it did on this machine as it was
    """

    rounds_ms: tuple[float, ...]

    @property
    def best(self) -> float:
        return min(self.rounds_ms)

    @property
    def median(self) -> float:
        return statistics.median(self.rounds_ms)


@dataclass(frozen=True, slots=True)
class Variant:
    """Something to time: `run` is timed, `reset` before it is not; `turn` is around each of its turns."""

    run: Work
    reset: Work = lambda: None
    turn: Callable[[], AbstractContextManager[object]] = nullcontext


def interleave(variants: Mapping[str, Variant], rounds: int, *, in_a_row: int = 1) -> dict[str, Timed]:
    """Run all variants once in turn to warm up, then `rounds` times, garbage collection off while timing.

    Each round starts with another variant, so that none always follows the same neighbour or the collection.

    in_a_row  how often a variant runs in its turn. Where it is more than once, the first run is not counted: it finds
              the caches and the threads as its neighbour left them, and a user's step follows a step.
    """
    seen: dict[str, list[float]] = {name: [] for name in variants}
    names = list(variants)
    for number in range(rounds + 1):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            with variants[name].turn():
                times = [_elapsed_ms(variants[name]) for _ in range(in_a_row)]
            if number > 0:
                seen[name] += times[1:] or times
        gc.collect()
    return {name: Timed(tuple(times)) for name, times in seen.items()}


def _elapsed_ms(variant: Variant) -> float:
    variant.reset()
    gc.disable()
    try:
        started = time.perf_counter()
        variant.run()
        return (time.perf_counter() - started) * 1e3
    finally:
        gc.enable()
