"""The same prompt fed in pieces of every size: from one sweep down to one token at a time, as decode does it.

The cache ends up the same but for rounding, and how much that is, is measured too: every cached key and value against
those of the one sweep. What changes is how often the weights are read, so this is where a machine shows from
which number of tokens on a forward waits for its arithmetic and no longer for its memory.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from engine.decode.prefilling import Fed, feed
from engine.errors import InvalidSettings
from engine.forward.kv_store import KVStore
from engine.forward.model_runner import ModelRunner
from engine.progress import OnProgress


@dataclass(frozen=True, slots=True)
class ChunkRun:
    """The prompt in pieces of one size.

    chunk             tokens per forward; the last one may be shorter
    forwards          how many that takes
    rounds_ms         all forwards of one feed together, once per round
    kv_difference     the largest of any cached number against the one sweep's
    logit_difference  the same for the last row's logits
    """

    chunk: int
    forwards: int
    rounds_ms: tuple[float, ...] = ()
    kv_difference: float = 0.0
    logit_difference: float = 0.0

    @property
    def best_ms(self) -> float:
        """The quickest round; 0 before the first."""
        return min(self.rounds_ms, default=0.0)

    @property
    def per_forward_ms(self) -> float:
        """A forward of `chunk` tokens, on the average over the quickest round."""
        return self.best_ms / self.forwards


@dataclass(frozen=True, slots=True)
class ChunkStudy:
    """All sizes, the one sweep first, and the largest cached number, to hold the differences against."""

    prompt_len: int
    runs: tuple[ChunkRun, ...]
    kv_largest: float = 0.0


def sizes_of(prompt_len: int) -> tuple[int, ...]:
    """The whole prompt, and every power of two below it, largest first."""
    return (prompt_len, *(2**k for k in reversed(range(prompt_len.bit_length())) if 2**k < prompt_len))


class Chunks:
    """A study under way. Any thread reads and stops it; the engine thread runs it."""

    def __init__(self, prompt_ids: Sequence[int], rounds: int = 2) -> None:
        if not prompt_ids:
            raise InvalidSettings("The prompt is empty: there is nothing to feed. Type something.")
        if rounds < 1:
            raise InvalidSettings(f"rounds must be 1 or more, got {rounds}.")
        self.prompt_ids, self.rounds = tuple(prompt_ids), rounds
        self.study = _nothing_yet(len(self.prompt_ids))
        self._gives_up = False

    def stop(self) -> None:
        """End after the forward under way; the sizes that are done stay."""
        self._gives_up = True

    def run(self, runner: ModelRunner, progress: OnProgress) -> Generator[None, None, ChunkStudy]:
        """Every size in every round, every other round backwards, yielding between forwards."""
        self.study = _nothing_yet(len(self.prompt_ids))  # work that ran out of memory is begun again
        runner.forward_uncached(self.prompt_ids[:1])  # not counted: it wakes the machine up
        yield
        total, done = self.rounds * sum(run.forwards for run in self.study.runs), 0

        def report(_fed: int, _of: int) -> None:
            nonlocal done
            if self._gives_up:
                raise _GivenUp
            done += 1
            progress(done, total)

        whole: Fed | None = None
        with suppress(_GivenUp):
            for place in self._order():
                fed = yield from feed(
                    runner, runner.scratch_store(), self.prompt_ids, self.study.runs[place].chunk, report
                )
                whole = whole or fed
                self._note(place, fed, whole)
                yield
        return self.study

    def _order(self) -> Iterator[int]:
        places = range(len(self.study.runs))
        for round_ in range(self.rounds):
            yield from places if round_ % 2 == 0 else reversed(places)

    def _note(self, place: int, fed: Fed, whole: Fed) -> None:
        runs = list(self.study.runs)
        run = runs[place]
        largest, difference = _against(whole.store, fed.store)
        runs[place] = replace(
            run,
            rounds_ms=(*run.rounds_ms, fed.forward_ms),
            kv_difference=max(run.kv_difference, difference),
            logit_difference=max(run.logit_difference, float((fed.row.logits - whole.row.logits).abs().max())),
        )
        self.study = replace(self.study, runs=tuple(runs), kv_largest=largest)


def _nothing_yet(length: int) -> ChunkStudy:
    return ChunkStudy(length, tuple(ChunkRun(chunk, -(-length // chunk)) for chunk in sizes_of(length)))


class _GivenUp(Exception):
    """Ends a feed half-way."""


def _against(whole: KVStore, store: KVStore) -> tuple[float, float]:
    """The largest cached number of `whole`, and the largest difference between the two caches."""
    largest = difference = 0.0
    for layer in range(whole.num_layers):
        for ours, theirs in zip(store.view(layer, store.length), whole.view(layer, whole.length), strict=True):
            largest = max(largest, float(theirs.abs().max()))
            difference = max(difference, float((ours.float() - theirs.float()).abs().max()))
    return largest, difference
