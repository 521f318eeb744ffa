"""One session's state on the engine thread: its recipe in parts, its cache, its records.

Nothing here is shared or locked: only the thread that owns the model touches it. What others see are
frozen records and the recipe.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from engine.config import ChosenToken, Recipe, SamplingParams, StopRules
from engine.errors import NotPrefilled, UnknownStep
from engine.forward.capture import CaptureRing
from engine.forward.kv_store import KVStore
from engine.records import FinishReason, StepRecord
from engine.tokens import Role


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A session at one moment. `epoch` changes when history was cut or replaced, not when it grew."""

    recipe: Recipe
    roles: tuple[Role, ...]
    records: tuple[StepRecord, ...]
    epoch: int


@dataclass(slots=True, weakref_slot=True)
class SessionState:
    """Tokens, cache and history of one session.

    records  one per step: the last one's token is not in the cache yet
    stopped  why a person or a lost connection ended it; None while nobody did
    rebuilt_tokens  prefilled again since the newest step, because the cache had been released
    recovered_tokens  copied from a shared prompt since then, for the same reason
    incoming  the cache of work under way (a prefill, a rebuild), until it takes the place of `store`
    watched  whether somebody looks at every step: then its attention is made with it
    """

    model_id: str
    store: KVStore
    ring: CaptureRing
    sampling: SamplingParams
    stop: StopRules
    seed: int
    prompt_ids: tuple[int, ...] = ()
    prompt_roles: tuple[Role, ...] = ()
    chosen: list[ChosenToken] = field(default_factory=list)
    records: list[StepRecord] = field(default_factory=list)
    stopped: FinishReason | None = None
    rebuilt_tokens: int = 0
    recovered_tokens: int = 0
    incoming: KVStore | None = None
    watched: bool = False

    @property
    def token_ids(self) -> tuple[int, ...]:
        """Prompt and continuation."""
        return self.prompt_ids + tuple(c.token_id for c in self.chosen)

    @property
    def generated_ids(self) -> tuple[int, ...]:
        """The continuation alone."""
        return tuple(c.token_id for c in self.chosen)

    @property
    def newest_id(self) -> int:
        """The token that the next step feeds: the only one that is not in the cache yet."""
        assert self.store.length == len(self.prompt_ids) + len(self.chosen) - 1, (
            f"the cache holds {self.store.length} tokens of {len(self.prompt_ids)} + {len(self.chosen)}"
        )
        return self.chosen[-1].token_id

    @property
    def roles(self) -> tuple[Role, ...]:
        """Where each token came from."""
        return self.prompt_roles + tuple("forced" if c.forced else "generated" for c in self.chosen)

    def recipe(self) -> Recipe:
        """This session as plain data."""
        return Recipe(self.model_id, self.prompt_ids, tuple(self.chosen), self.sampling, self.stop, self.seed)

    def require_step(self, step: int) -> StepRecord:
        """The record of a step, or an error a person understands."""
        if not self.records:
            raise NotPrefilled("There is no step yet. Prefill a prompt first.")
        if not 0 <= step < len(self.records):
            raise UnknownStep(f"There is no step {step}: this session has steps 0 to {len(self.records) - 1}.")
        return self.records[step]

    def length_at(self, step: int) -> int:
        """Tokens in the cache right after `step`."""
        return len(self.prompt_ids) + step

    def truncate(self, step: int) -> None:
        """Keep steps 0 to `step`. The token that `step` drew stays on screen, and out of the cache."""
        self.require_step(step)
        self.store.truncate(self.length_at(step))
        self.ring.truncate(step + 1)
        del self.records[step + 1 :], self.chosen[step + 1 :]
        self.stopped = None

    def fork(self, step: int) -> SessionState:
        """An independent copy of steps 0 to `step`."""
        self.require_step(step)
        return replace(
            self,
            store=self.store.fork(self.length_at(step)),
            ring=CaptureRing(self.ring.budget),
            chosen=self.chosen[: step + 1],
            records=self.records[: step + 1],
            stopped=None,
            rebuilt_tokens=0,
            recovered_tokens=0,
            incoming=None,
        )

    def become(self, other: SessionState) -> None:
        """Take over another session's tokens, cache, history, settings and captures."""
        self.store, self.ring = other.store, other.ring
        self.prompt_ids, self.prompt_roles = other.prompt_ids, other.prompt_roles
        self.sampling, self.stop, self.seed = other.sampling, other.stop, other.seed
        self.chosen, self.records, self.stopped = other.chosen, other.records, other.stopped
        self.rebuilt_tokens, self.recovered_tokens = other.rebuilt_tokens, other.recovered_tokens

    def clear(self) -> None:
        """Forget prompt, continuation, cache and history; settings stay."""
        self.store.clear()
        self.ring.clear()
        self.prompt_ids, self.prompt_roles = (), ()
        self.chosen, self.records = [], []
        self.stopped, self.rebuilt_tokens, self.recovered_tokens = None, 0, 0

    def drop_unrecorded(self) -> None:
        """Back to the newest record: take out what a step that failed half-way had already put in place."""
        steps = len(self.records)
        self.store.truncate(self.length_at(steps - 1))
        self.ring.truncate(steps)
        del self.chosen[steps:]

    def drop_newest(self) -> None:
        """Take back a whole step that was recorded and shown to nobody."""
        record = self.records.pop()
        self.rebuilt_tokens, self.recovered_tokens = record.rebuilt_tokens, record.recovered_tokens
        self.drop_unrecorded()

    @contextmanager
    def undone_if_it_fails(self) -> Iterator[None]:
        """Where the work within raises, tokens, history and settings are as they were. A cache it dropped is gone."""
        kept = replace(self, chosen=list(self.chosen), records=list(self.records))
        length = self.store.length
        try:
            yield
        except BaseException:
            self.become(kept)
            self.store.length = length if self.store.reserved_bytes else 0  # cut, and nothing written behind it
            raise

    def release(self) -> None:
        """Drop the tensors; the recipe and the records stay, and the next touch rebuilds the cache."""
        self.store.clear()
        self.ring.clear()

    @contextmanager
    def filling(self) -> Iterator[None]:
        """What work under way puts beside the cache counts as this session's, until it is done or has failed."""
        try:
            yield
        finally:
            self.incoming = None

    @property
    def live_bytes(self) -> int:
        """Bytes of the tokens held, also by work under way."""
        return self.store.live_bytes + (self._beside.live_bytes if self._beside else 0)

    @property
    def reserved_bytes(self) -> int:
        """Bytes allocated for them, room for tokens to come included."""
        return self.store.reserved_bytes + (self._beside.reserved_bytes if self._beside else 0)

    @property
    def _beside(self) -> KVStore | None:
        return None if self.incoming is self.store else self.incoming

    @property
    def is_released(self) -> bool:
        """True where records exist but the cache is gone."""
        return bool(self.records) and self.store.length == 0
