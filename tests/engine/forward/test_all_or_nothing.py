"""Memory that runs out at any call of a step, or of what moves a session, leaves the session as it was.

Each way in is run once to count the calls that could run out, then again and again, with another one of them failing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest
import torch

from engine.config import SamplingParams, StopRules
from engine.decode import stepping
from engine.decode.stepping import Stepper
from engine.errors import EngineFault
from engine.forward.capture import CaptureRing
from engine.forward.forward_pass import ForwardPass
from engine.forward.kv_store import KVStore
from engine.llm_engine import LLMEngine
from engine.serving.session_requests import SessionRequests
from engine.session import DecodeSession
from tests.engine.architectures import tiny_engine
from tests.engine.holding import hold

PROMPT = (40, 50, 60, 70, 80, 90)
WARM = SamplingParams(temperature=0.9, top_k=40, repetition_penalty=1.1)
CALLS: tuple[tuple[Any, str], ...] = (
    (torch.Tensor, "float"),
    (torch.Tensor, "clone"),
    (torch.Tensor, "cpu"),
    (KVStore, "append"),
    (KVStore, "norms"),
    (KVStore, "fork"),
    (KVStore, "block"),
    (ForwardPass, "hand_out"),
    (stepping, "sample"),
    (CaptureRing, "put"),
    (Stepper, "verdict"),
    (Stepper, "memory"),
    (SessionRequests, "_publish"),
)


class Memory:
    """Runs out at one of the calls above, on the engine's thread, while it is armed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.thread: threading.Thread | None = None
        self.seen: list[str] = []
        self.fails_at = -1
        for owner, name in CALLS:
            monkeypatch.setattr(owner, name, self._counted(getattr(owner, name), name))

    def arm(self, engine: LLMEngine, fails_at: int) -> None:
        self.thread, self.seen, self.fails_at = engine._thread, [], fails_at

    def disarm(self) -> None:
        self.thread = None

    def _counted(self, call: Callable[..., Any], name: str) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            if threading.current_thread() is self.thread:
                self.seen.append(name)
                if len(self.seen) - 1 == self.fails_at:
                    raise torch.OutOfMemoryError("no memory left")
            return call(*args, **kwargs)

        return wrapped


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Memory:
    return Memory(monkeypatch)


@pytest.fixture
def engine():
    """Nothing is kept that could be shed: what fails is told to whoever asked."""
    made = tiny_engine(prefix_bytes=0, prefill_chunk=4)
    yield made
    made.close()


def opened(engine: LLMEngine, seed: int = 7) -> DecodeSession:
    session = engine.create_session(sampling=WARM, seed=seed)
    session.prefill(PROMPT).result()
    for _ in range(3):
        session.step().result()
    return session


def look(session: DecodeSession) -> tuple[Any, ...]:
    """Everything of a session that a failure must not change."""
    state = session._state
    return (
        session.snapshot,
        state.recipe(),
        tuple(state.records),
        state.store.length,
        state.stopped,
        state.rebuilt_tokens,
    )


def goes_on(session: DecodeSession) -> list[int]:
    """The tokens of the run and of two more steps, none of which a stop rule may hold up."""
    session.configure(stop=StopRules()).result()
    session.rewind(len(session.records) - 1).result()
    for _ in range(2):
        session.step().result()
    assert session._state.store.length == len(session._state.token_ids) - 1
    token_ids = list(session.recipe.token_ids)
    session.release().result()  # else it is what the next failure finds to shed
    return token_ids


MOVES: dict[str, Callable[[DecodeSession], Future[Any]]] = {
    "step": lambda s: s.step(),
    "prefill": lambda s: s.prefill(PROMPT[::-1]),
    "rebuild": lambda s: s.rebuild(s.recipe, s.roles),
    "rewind": lambda s: s.rewind(1),
    "fork": lambda s: s.fork(2),
    "force": lambda s: s.force(99),
    "stop": lambda s: s.stop(),
    "configure": lambda s: s.configure(stop=StopRules(max_new_tokens=2), sampling=SamplingParams(), seed=1),
}


@pytest.mark.parametrize("move", MOVES)
def test_memory_that_runs_out_at_any_call_leaves_the_session_as_it_was_and_a_retry_gives_the_same_ids(
    engine, memory, move
):
    undisturbed = opened(engine)
    memory.arm(engine, -1)
    moved = MOVES[move](undisturbed).result()
    memory.disarm()
    count = len(memory.seen)
    expected = goes_on(moved if move == "fork" else undisturbed)
    undisturbed.release().result()
    assert count > 0
    for fails_at in sorted({*range(0, count, max(1, count // 10)), count - 1}):
        session = opened(engine)
        before = look(session)
        memory.arm(engine, fails_at)
        error = MOVES[move](session).exception()
        memory.disarm()
        if move == "fork" and error is None:  # the half-made copy was shed, and the fork made again
            assert "fork" in memory.seen[fails_at + 1 :]
            session.release().result()
            continue
        assert isinstance(error, EngineFault), f"call {fails_at} of {count}, {memory.seen[-1]}: {error!r}"
        assert look(session) == before, f"call {fails_at}, {memory.seen[-1]}"
        moved = MOVES[move](session).result()
        assert goes_on(moved if move == "fork" else session) == expected, f"call {fails_at}, {memory.seen[-1]}"
        session.release().result()


def test_a_released_cache_that_cannot_be_filled_again_is_filled_at_the_next_try(engine, memory):
    undisturbed = opened(engine)
    undisturbed.step().result()
    expected = goes_on(undisturbed)
    session = opened(engine)
    for fails_at in (0, 5, 12):
        session.release().result()
        memory.arm(engine, fails_at)
        assert isinstance(session.step().exception(), EngineFault)
        memory.disarm()
        assert session._state.is_released
    session.step().result()
    assert goes_on(session) == expected


@pytest.mark.parametrize("call", ["float", "clone", "hand_out", "sample", "norms", "verdict", "memory"])
def test_a_batch_that_runs_out_of_memory_anywhere_sheds_and_is_tried_again_without_anybody_noticing(memory, call):
    engine = tiny_engine(prefix_bytes=0)
    idle, *batch = (opened(engine, seed) for seed in range(4))
    expected = []
    for session in batch:
        twin = session.fork(3).result()
        expected.append([twin.step().result().emitted_ids[0] for _ in range(3)])
        twin.close().result()
    memory.arm(engine, -1)
    [future.result() for future in together(engine, batch)]
    first = last_before_sampling(memory.seen, call)
    for session in batch:
        session.rewind(3).result()
    memory.arm(engine, first)
    records = [future.result() for future in together(engine, batch)]
    memory.disarm()
    assert idle._state.is_released, "what nobody waits for was given up for it"
    assert [r.emitted_ids[0] for r in records] == [ids[0] for ids in expected]
    for session, ids in zip(batch, expected, strict=True):
        assert [session.step().result().emitted_ids[0] for _ in range(2)] == ids[1:]
        assert session._state.store.length == len(session._state.token_ids) - 1
    engine.close()


def last_before_sampling(seen: list[str], call: str) -> int:
    """Of the calls of this name: the last of the forward's, where it has any, and else the first of the records'."""
    forward = seen[: seen.index("sample")]
    return len(forward) - 1 - forward[::-1].index(call) if call in forward else seen.index(call)


def together(engine: LLMEngine, sessions: list[DecodeSession]) -> list[Future[Any]]:
    release = hold(engine)
    futures = [session.step() for session in sessions]
    release.set()
    return futures
