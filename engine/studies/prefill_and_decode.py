"""The two phases of a request, timed: the prompt in one sweep, then one token a turn.

Two requests are measured together, turn by turn, each as far along as the other, so that a busy moment of the machine
hits both. A sweep is one forward and would be one sample, so it is done several times, spread over the run.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from torch import Tensor

from engine.errors import InvalidSettings
from engine.forward.kv_store import KVStore
from engine.forward.model_runner import Feed, ModelRunner
from engine.progress import OnProgress

SWEEPS = 3


@dataclass(frozen=True, slots=True)
class PhaseTimes:
    """One request.

    prompt_len  P, run in one sweep; its last row gives the first new token
    new_tokens  N; N - 1 of them are fed, one a turn
    sweeps_ms   forwards of the whole prompt, each onto an empty cache
    steps_ms    forwards of one token, with P, P + 1, ... tokens cached before
    """

    prompt_len: int
    new_tokens: int
    sweeps_ms: tuple[float, ...] = ()
    steps_ms: tuple[float, ...] = ()

    @property
    def prefill_ms(self) -> float:
        """One sweep: the mean, as the decode time is a sum over good and bad moments too."""
        return sum(self.sweeps_ms) / len(self.sweeps_ms) if self.sweeps_ms else 0.0

    @property
    def decode_ms(self) -> float:
        """All turns after the first token."""
        return sum(self.steps_ms)

    @property
    def prefill_per_s(self) -> float:
        """Prompt tokens per second of prefill; 0 where nothing was measured."""
        return 1e3 * self.prompt_len / self.prefill_ms if self.prefill_ms else 0.0

    @property
    def decode_per_s(self) -> float:
        """Turns per second of decode; 0 where nothing was measured."""
        return 1e3 * len(self.steps_ms) / self.decode_ms if self.steps_ms else 0.0

    @property
    def median_step_ms(self) -> float:
        """One turn; 0 where there was none."""
        return median(self.steps_ms) if self.steps_ms else 0.0

    @property
    def is_whole(self) -> bool:
        """Whether every forward was run."""
        return len(self.sweeps_ms) == SWEEPS and len(self.steps_ms) == self.new_tokens - 1


class Phases:
    """Requests under way. Any thread reads and stops it; the engine thread runs it."""

    def __init__(self, source: Sequence[int], sizes: Sequence[tuple[int, int]]) -> None:
        """`source` is repeated until there are enough prompt tokens; `sizes` are (P, N), one for each request."""
        if not source:
            raise InvalidSettings("The prompt is empty: there is nothing to fill the prompts with. Type something.")
        for prompt_len, new_tokens in sizes:
            if prompt_len < 1 or new_tokens < 1:
                raise InvalidSettings(f"A request needs 1 prompt token and 1 new one, got {prompt_len} + {new_tokens}.")
        self._sizes = [(filled(source, p), n) for p, n in sizes]
        self._requests = [_Request(*size) for size in self._sizes]
        self._gives_up = False

    @property
    def times(self) -> tuple[PhaseTimes, ...]:
        """What was measured so far."""
        return tuple(request.times for request in self._requests)

    def stop(self) -> None:
        """End after the forward under way; what was measured stays."""
        self._gives_up = True

    def run(self, runner: ModelRunner, progress: OnProgress) -> Generator[None, None, tuple[PhaseTimes, ...]]:
        """All forwards, yielding between them. One that is not counted comes first: it wakes the machine up."""
        self._requests = [_Request(*size) for size in self._sizes]  # work that ran out of memory is begun again
        runner.forward_uncached(self._requests[0].prompt_ids[:1])
        yield
        waiting = [(request, request.forwards(runner)) for request in self._requests]
        total = sum(request.total for request in self._requests)
        while not self._gives_up:
            left = [pair for pair in waiting if pair[0].done < pair[0].total]
            if not left:
                break
            next(min(left, key=lambda pair: pair[0].done / pair[0].total)[1])
            progress(sum(request.done for request in self._requests), total)
            yield
        return self.times


def filled(source: Sequence[int], length: int) -> tuple[int, ...]:
    """`source` over and over, cut to `length`: what a forward takes does not depend on which tokens they are."""
    return tuple((list(source) * (length // len(source) + 1))[:length])


class _Request:
    """One request and the forwards it still needs."""

    def __init__(self, prompt_ids: tuple[int, ...], new_tokens: int) -> None:
        self.prompt_ids, self.new_tokens = prompt_ids, new_tokens
        self.times = PhaseTimes(len(prompt_ids), new_tokens)
        self.total = SWEEPS + new_tokens - 1

    @property
    def done(self) -> int:
        return len(self.times.sweeps_ms) + len(self.times.steps_ms)

    def forwards(self, runner: ModelRunner) -> Generator[None, None, None]:
        """One forward before each `yield`: a sweep, half of the steps, a sweep, the other half, a sweep."""
        store, row = self._sweep(runner)
        yield
        steps = self.new_tokens - 1
        for count in (steps // 2, steps - steps // 2):
            for _ in range(count):
                row = self._step(runner, store, row)
                yield
            self._sweep(runner)
            yield

    def _sweep(self, runner: ModelRunner) -> tuple[KVStore, Tensor]:
        """A cache that holds the prompt, and the logits (V,) of its last row."""
        store = runner.scratch_store()
        result = runner.forward([Feed(store, self.prompt_ids)])
        self.times = replace(self.times, sweeps_ms=(*self.times.sweeps_ms, result.forward_ms))
        return store, result.rows[0].logits[-1]

    def _step(self, runner: ModelRunner, store: KVStore, row: Tensor) -> Tensor:
        """Feed the likeliest token of `row` (V,), and give the next row."""
        result = runner.forward([Feed(store, (int(row.argmax()),))])
        self.times = replace(self.times, steps_ms=(*self.times.steps_ms, result.forward_ms))
        return result.rows[0].logits[-1]
