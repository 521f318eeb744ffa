"""Two loops over the same tokens, turn by turn: one keeps a cache, the other runs the whole sequence again.

Everything else is shared: the model, its kernels, the draw, one row of logits a forward. The two take turns, and
who goes first changes at every step, so whatever else the machine does hits both alike. What people get wrong
is step 0: there is nothing to keep yet, so both run the whole prompt, and the cache saves nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Generator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import torch
from torch import Tensor

from engine.config import SamplingParams
from engine.decode.prefilling import require_prompt
from engine.decode.sampling import sample
from engine.errors import InvalidSettings, PromptTooLong
from engine.facts import ModelInfo
from engine.forward.model_runner import Feed, ModelRunner
from engine.progress import OnProgress
from engine.serving.requests import Pieces

Way = Literal["cached", "uncached"]

MOST_NEW = 4096


@dataclass(frozen=True, slots=True)
class Turn:
    """One forward of one loop.

    positions   tokens run through the layers
    pairs       query-key pairs that causality allows, counted row by row; times layers and heads they are dot products
    forward_ms  wall time of the forward, device synchronised
    token_id    what its last row draws
    """

    positions: int
    pairs: int
    forward_ms: float
    token_id: int


@dataclass(frozen=True, slots=True)
class RaceStep:
    """The same step of both loops.

    token_id          what both go on with: the cached loop's, should they differ
    first             who ran first
    logit_difference  the largest, over the whole vocabulary
    lead              of the likeliest token over the next one, in logits: a difference below half of it cannot turn
                      a greedy choice
    """

    index: int
    cached: Turn
    uncached: Turn
    token_id: int
    first: Way
    logit_difference: float
    lead: float

    @property
    def agrees(self) -> bool:
        """Whether both drew the same token."""
        return self.cached.token_id == self.uncached.token_id


class Runs(Protocol):
    """The part of an engine that a race needs."""

    info: ModelInfo

    def study(self, key: str, work: Callable[[ModelRunner], Pieces], *, owner: str | None = None) -> Future[Any]:
        """Ask for work with the model on the engine thread."""
        ...


def _unseen(_done: int, _total: int) -> None:
    """Progress that nobody looks at."""


class Race:
    """A race and what it has shown so far. Any thread reads and stops it; the engine thread runs it.

    No stop rule applies: N tokens are N tokens, so that what was counted can be held against the formula.
    """

    def __init__(self, prompt_ids: tuple[int, ...], new_tokens: int, sampling: SamplingParams, seed: int = 0) -> None:
        if not prompt_ids:
            raise InvalidSettings("The prompt is empty: both loops need a token to begin with. Type something.")
        if not 1 <= new_tokens <= MOST_NEW:
            raise InvalidSettings(f"new_tokens must be from 1 to {MOST_NEW:,}, got {new_tokens:,}.")
        self.prompt_ids, self.new_tokens = prompt_ids, new_tokens
        self.sampling, self.seed = sampling, seed
        self.steps: tuple[RaceStep, ...] = ()  # replaced as a whole, so a reader never sees half a step
        self.future: Future[tuple[RaceStep, ...]] = Future()
        self._gives_up = False

    def start(
        self, engine: Runs, progress: OnProgress = _unseen, *, owner: str | None = None
    ) -> Future[tuple[RaceStep, ...]]:
        """Run on the engine thread, a forward at a time, so that others step in between. Raises where it cannot be."""
        self.require_room(engine.info)
        key = f"race-{secrets.token_hex(8)}"
        self.future = engine.study(key, lambda runner: self.run(runner, progress), owner=owner)
        return self.future

    def require_room(self, info: ModelInfo) -> None:
        """Refuse a race that would run past what the model reads."""
        require_prompt(self.prompt_ids, info)
        limit, needed = info.limit_for(len(self.prompt_ids)), len(self.prompt_ids) + self.new_tokens - 1
        if limit is not None and needed > limit:
            raise PromptTooLong(
                f"{len(self.prompt_ids):,} prompt tokens and {self.new_tokens:,} new ones need {needed:,} positions; "
                f"{info.name} reads {limit:,}. Take {needed - limit:,} fewer."
            )

    def stop(self) -> None:
        """End after the forward under way; the steps that are done stay."""
        self._gives_up = True

    @property
    def was_stopped(self) -> bool:
        """Whether somebody gave up before the last step."""
        return self._gives_up and len(self.steps) < self.new_tokens

    def run(self, runner: ModelRunner, progress: OnProgress = _unseen) -> Generator[None, None, tuple[RaceStep, ...]]:
        """All steps, yielding between forwards. The first forward of all is not counted: it wakes the machine up."""
        self.steps = ()  # work that ran out of memory is begun again
        runner.forward_uncached(self.prompt_ids)
        yield
        loops: dict[Way, _Cached | _Uncached] = {"cached": _Cached(runner), "uncached": _Uncached(runner)}
        ids = self.prompt_ids
        for index in range(self.new_tokens):
            order: tuple[Way, Way] = ("uncached", "cached") if index % 2 else ("cached", "uncached")
            done: dict[Way, _Forward] = {}
            for way in order:
                if self._gives_up:
                    return self.steps
                done[way] = loops[way].forward(ids)
                yield
            step = self._step(index, ids, order[0], done["cached"], done["uncached"])
            self.steps = (*self.steps, step)
            ids = (*ids, step.token_id)
            progress(index + 1, self.new_tokens)
        return self.steps

    def _step(self, index: int, ids: tuple[int, ...], first: Way, cached: _Forward, uncached: _Forward) -> RaceStep:
        turns = [Turn(f.positions, f.pairs, f.forward_ms, self._draw(f.logits, ids, index)) for f in (cached, uncached)]
        best, second = torch.topk(cached.logits, 2).values.tolist()
        difference = float((cached.logits - uncached.logits).abs().max())
        return RaceStep(index, turns[0], turns[1], turns[0].token_id, first, difference, best - second)

    def _draw(self, logits: Tensor, ids: tuple[int, ...], index: int) -> int:
        return sample(logits, ids, self.sampling, seed=self.seed, step=index).draw.token_id


@dataclass(frozen=True, slots=True, eq=False)
class _Forward:
    """What a loop's forward gave: logits (V,), and what it took."""

    logits: Tensor
    positions: int
    pairs: int
    forward_ms: float


class _Cached:
    """Feeds what its cache does not hold yet."""

    def __init__(self, runner: ModelRunner) -> None:
        self._runner, self._store = runner, runner.scratch_store()

    def forward(self, ids: tuple[int, ...]) -> _Forward:
        past = self._store.length
        result = self._runner.forward([Feed(self._store, ids[past:])])
        return _Forward(result.rows[0].logits[-1], len(ids) - past, _pairs(past, len(ids)), result.forward_ms)


class _Uncached:
    """Feeds everything, every time."""

    def __init__(self, runner: ModelRunner) -> None:
        self._runner = runner

    def forward(self, ids: tuple[int, ...]) -> _Forward:
        result = self._runner.forward_uncached(ids)
        return _Forward(result.rows[0].logits[-1], len(ids), _pairs(0, len(ids)), result.forward_ms)


def _pairs(past: int, end: int) -> int:
    """The query at position p looks at p + 1 keys: itself and all before it."""
    return sum(position + 1 for position in range(past, end))
