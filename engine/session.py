"""A decode session as callers hold it: ask for steps, read frozen records.

Every call that moves the session runs on the engine thread, in the order it was asked for, and returns a
Future. What this object shows between calls (`recipe`, `records`, `roles`) is a snapshot that is replaced
as a whole before the Future resolves, so readers never see half a step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.block import Blocks
from engine.config import Recipe, SamplingParams, StopRules
from engine.decode import inspection, prefilling
from engine.decode.block_reading import blocks_at
from engine.decode.layer_times import LayerTimes, layer_times
from engine.decode.session_state import SessionState, Snapshot
from engine.divergence import Distributions
from engine.errors import UnknownToken
from engine.measure.clocks import now_ms
from engine.records import Candidates, FinishReason, PromptRow, Stage, StepRecord, TokenStanding
from engine.serving.engine_thread import EngineThread
from engine.serving.requests import Pieces, StepRequest
from engine.serving.session_requests import SessionRequests
from engine.tokens import EncodedPrompt, Role


class DecodeSession(SessionRequests):
    """One conversation with the decode loop.

    solo  steps asked for from now on run in a forward of their own, so that repeating them repeats every bit

    A session made `watched` brings each step's attention along: it is there once the step's Future resolves.
    """

    def __init__(
        self, engine: EngineThread, state: SessionState, *, solo: bool = False, owner: str | None = None
    ) -> None:
        super().__init__(engine, state, owner)
        self.solo = solo

    # --- reading ------------------------------------------------------------------------------------------

    @property
    def snapshot(self) -> Snapshot:
        """Recipe, roles and records that belong together."""
        return self._snapshot

    @property
    def recipe(self) -> Recipe:
        """This session as plain data."""
        return self._snapshot.recipe

    @property
    def records(self) -> tuple[StepRecord, ...]:
        """One record per step taken."""
        return self._snapshot.records

    @property
    def roles(self) -> tuple[Role, ...]:
        """Where each token of `recipe.token_ids` came from."""
        return self._snapshot.roles

    @property
    def epoch(self) -> int:
        """Changes when history was cut or replaced."""
        return self._snapshot.epoch

    # --- moving -------------------------------------------------------------------------------------------

    def prefill(self, prompt: EncodedPrompt | Sequence[int], *, afresh: bool = False) -> Future[StepRecord]:
        """Begin again with `prompt`: its forward, and the first token drawn.

        What was prefilled before is copied; `afresh` reads every token all the same, to be seen or timed.
        """
        if not isinstance(prompt, EncodedPrompt):
            prompt = EncodedPrompt(tuple(prompt), _typed(len(prompt)))
        asked, encoded = now_ms(), prompt
        chunk, progress = self.engine.config.prefill_chunk, self._progress("prefill")

        def work() -> Pieces:
            return prefilling.prefill(
                self.engine.stepper,
                self._state,
                encoded,
                asked_ms=asked,
                chunk=chunk,
                progress=progress,
                afresh=afresh,
            )

        return self._submit(work, cut=True)

    def step(self, *, auto: bool = False) -> Future[StepRecord]:
        """One turn of the loop: feed the newest token, draw the next. An `auto` step lets clicks go first."""
        return self.engine.submit_step(self.id, self._step_request(auto=auto))

    def step_with(self, others: Sequence[DecodeSession]) -> list[Future[StepRecord]]:
        """One step of this session and of others, asked for at one moment: those that may share a forward do."""
        assert all(other.engine is self.engine for other in others), "sessions of two engines share no forward"
        requests = {session.id: session._step_request() for session in (self, *others)}
        self.engine.submit_steps(requests)
        return [request.future for request in requests.values()]

    def _step_request(self, *, auto: bool = False) -> StepRequest:
        self._require_open()
        progress = self._progress("rebuild")
        return StepRequest(
            self._state,
            now_ms(),
            self._before_step,
            self._publish,
            restore=lambda: self._restore(progress),
            owner=self.owner,
            auto=auto,
            solo=self.solo,
        )

    def rewind(self, step: int) -> Future[None]:
        """Forget every step after `step`. What it drew stays on screen, and out of the cache."""
        return self._soon(lambda: self.engine.stepper.rewind(self._state, step), cut=True)

    def fork(self, step: int, *, owner: str | None = None) -> Future[DecodeSession]:
        """A new session that shares steps 0 to `step` with this one, its owner too unless another is named."""

        def work() -> DecodeSession:
            state = self.engine.stepper.fork(self._state, step)
            return DecodeSession(self.engine, state, solo=self.solo, owner=owner or self.owner)

        return self._soon(work)

    def force(self, token_id: int) -> Future[StepRecord]:
        """Put `token_id` in place of the newest token, whatever the draw gave. It is marked in the record."""

        def work() -> StepRecord:
            self._state.require_step(len(self._state.records) - 1)
            if not 0 <= token_id < self.engine.info.vocab_size:
                size = self.engine.info.vocab_size
                raise UnknownToken(f"There is no token {token_id}: ids go from 0 to {size - 1:,}.")
            logits = inspection.logits_at(self.engine.stepper.runner, self._state, len(self._state.records) - 1)
            return self.engine.stepper.redraw(self._state, logits, token_id)

        return self._soon(work, cut=True)

    def reset(self) -> Future[None]:
        """Forget prompt, cache and history; settings stay."""
        return self._at_once(self._state.clear, cut=True)

    def stop(self, reason: FinishReason = "user") -> Future[None]:
        """End decoding; a rewind or a forced token goes on from there."""

        def work() -> None:
            self._state.stopped = reason
            if self._state.records:
                self.engine.stepper.recheck(self._state)

        return self._at_once(work, cut=True)

    def configure(
        self, *, sampling: SamplingParams | None = None, stop: StopRules | None = None, seed: int | None = None
    ) -> Future[None]:
        """Change settings from the next step on; tokens that were drawn stay as they are."""

        def work() -> None:
            state = self._state
            recipe = Recipe(
                state.model_id,
                sampling=sampling or state.sampling,
                stop=stop or state.stop,
                seed=state.seed if seed is None else seed,
            )
            state.sampling, state.stop, state.seed = recipe.sampling, self._capped(recipe.stop), recipe.seed
            if state.records and stop is not None:
                self.engine.stepper.recheck(state)

        return self._at_once(work, cut=stop is not None)

    def release(self) -> Future[None]:
        """Free the tensors. Recipe and records stay, and the next step rebuilds the cache."""

        def work() -> None:
            if self._state.store.reserved_bytes:
                self.engine.count(releases=1)
            self._state.release()

        return self._at_once(work)

    def close(self) -> Future[None]:
        """Forget everything and give the session's place to others, once what was asked before is done."""

        def work() -> None:
            self._state.clear()
            self.engine.sessions.remove(self.id)

        done = self._at_once(work, cut=True)
        self._is_closed = True
        return done

    def rebuild(self, recipe: Recipe, roles: Sequence[Role] | None = None) -> Future[DecodeSession]:
        """Become what `recipe` describes."""
        recipe = replace(recipe, stop=self._capped(recipe.stop))
        known = _typed(len(recipe.prompt_ids)) if roles is None else tuple(roles)
        prompt_roles = known[: len(recipe.prompt_ids)]

        chunk, progress = self.engine.config.prefill_chunk, self._progress("rebuild")

        def work() -> Pieces:
            yield from prefilling.rebuild(
                self.engine.stepper, self._state, recipe, prompt_roles, chunk=chunk, progress=progress
            )
            return self

        return self._submit(work, cut=True)

    # --- looking: moves nothing ---------------------------------------------------------------------------

    def attention(self, step: int) -> Future[NDArray[np.float32]]:
        """(L, H, K): what the last query of a step gave to each of its K keys. Rows sum to 1, less a sink's share.

        Of the newest step of a watched session it is there already, and the engine's thread is not asked.
        """
        kept = self._state.ring.get(step)
        if kept is not None and kept.attention is not None:
            self._require_open()
            there: Future[NDArray[np.float32]] = Future()
            there.set_result(kept.attention)
            return there
        return self._soon(lambda: inspection.attention_at(self.engine.stepper.runner, self._state, step))

    def prompt_attention(self, layer: int, head: int) -> Future[NDArray[np.float32]]:
        """(T, T): every prompt token's row of one head. Raises PromptTooLong where that would be too many."""
        runner, progress = self.engine.stepper.runner, self._progress("attention map")
        return self._look(lambda: inspection.prompt_attention(runner, self._state, layer, head, progress))

    def layer_times(self, step: int) -> Future[LayerTimes]:
        """Where a decode step's forward goes, layer by layer: it is replayed with a clock between them."""
        return self.run(lambda state: layer_times(self.engine.stepper.runner, state, step))

    def blocks(self, step: int) -> Future[Blocks]:
        """What the residual stream of a step's newest token went through in every layer: one replay of that token."""
        return self.run(lambda state: blocks_at(self.engine.stepper.runner, state, step))

    def what_if(self, step: int, sampling: SamplingParams) -> Future[tuple[Candidates, tuple[Stage, ...]]]:
        """The distribution of a step under other settings; no token is drawn again."""
        return self._soon(lambda: inspection.what_if(self.engine.stepper, self._state, step, sampling))

    def standings(
        self, step: int, token_ids: Sequence[int], sampling: SamplingParams | None = None
    ) -> Future[tuple[TokenStanding, ...]]:
        """Where tokens stood at a step: rank among all, raw logit, probability after every stage."""
        return self._soon(lambda: inspection.standings_at(self.engine.stepper, self._state, step, token_ids, sampling))

    def distributions(self, step: int) -> Future[Distributions]:
        """Every token's probability at a step, raw and after all stages."""
        return self._soon(lambda: inspection.distributions_at(self.engine.stepper, self._state, step))

    def prompt_rows(self) -> Future[tuple[PromptRow, ...]]:
        """What the model would have said after each prompt token."""

        progress = self._progress("prompt rows")

        def work() -> Pieces:
            self._state.require_step(0)
            return prefilling.prompt_rows(self.engine.stepper.runner, self._state, progress)

        return self._look(work)

    def look(self, read: Callable[[SessionState], Any]) -> Future[Any]:
        """Run a short `read` on the engine thread with this session's state, cache in place; it must move nothing."""
        return self._soon(lambda: read(self._state))

    def run(self, work: Callable[[SessionState], Pieces]) -> Future[Any]:
        """Run `work` on the engine thread with this session's state, cache in place; it must move nothing.

        Ends early, between two of its pieces, once somebody cancels.
        """
        return self._look(self._until_cancelled(lambda: work(self._state)))

    def _before_step(self) -> None:
        self.engine.stepper.require_unfinished(self._state)

    def _capped(self, stop: StopRules) -> StopRules:
        """No laxer than the engine's budgets allow."""
        return self.engine.config.budgets.capped(stop)


def _typed(count: int) -> tuple[Role, ...]:
    """The roles of a prompt that somebody typed."""
    return tuple[Role, ...](["prompt"] * count)
