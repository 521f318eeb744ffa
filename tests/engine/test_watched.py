"""A watched session's newest attention is there with its record, is what a look would find, and changes nothing."""

from __future__ import annotations

import numpy as np
import pytest

from engine.config import SamplingParams
from engine.errors import SessionError
from engine.forward import ragged
from engine.llm_engine import LLMEngine
from engine.session import DecodeSession
from tests.engine.architectures import tiny_engine
from tests.engine.holding import hold

WARM = SamplingParams(temperature=1.0, top_k=50)
LENGTHS = (5, 9, 40, 70)  # two go together, two are alone in their forward's groups


@pytest.fixture
def engine():
    made = tiny_engine()
    yield made
    made.close()


def opened(engine: LLMEngine, *, watched: bool, lengths: tuple[int, ...] = LENGTHS) -> list[DecodeSession]:
    sessions = [engine.create_session(sampling=WARM, seed=n, watched=watched) for n in lengths]
    for session, length in zip(sessions, lengths, strict=True):
        session.prefill(tuple(range(10, 10 + length))).result()
    return sessions


def step_together(engine: LLMEngine, sessions: list[DecodeSession]) -> None:
    release = hold(engine)
    futures = [session.step() for session in sessions]
    release.set()
    assert {future.result().batch_size for future in futures} == {len(sessions)}


def is_there(engine: LLMEngine, session: DecodeSession, step: int) -> bool:
    """Whether attention is answered while the engine's thread does something else."""
    release = hold(engine)
    try:
        return session.attention(step).done()
    finally:
        release.set()


def test_the_attention_of_a_prefill_a_step_and_a_step_with_others_is_there_with_the_record(engine):
    first, *others = opened(engine, watched=True)
    assert is_there(engine, first, 0)
    first.step().result()
    assert is_there(engine, first, 1)
    step_together(engine, [first, *others])
    assert [is_there(engine, s, s.records[-1].index) for s in (first, *others)] == [True] * 4


def test_a_prompt_that_another_session_prefilled_brings_its_attention_along(engine):
    opened(engine, watched=False)
    (again,) = opened(engine, watched=True, lengths=LENGTHS[:1])
    assert again.records[0].reused_tokens == LENGTHS[0]
    assert is_there(engine, again, 0)


@pytest.mark.parametrize(
    ("name", "longest"),
    [("llama", 0), ("llama", 256), ("gemma2", 256), ("gpt_oss", 256)],  # alone; in groups; capped, windowed; with sinks
)
def test_what_comes_with_the_record_is_what_a_look_finds(name, longest, monkeypatch):
    monkeypatch.setattr(ragged, "LONGEST_COPIED", longest)
    engine = tiny_engine(name)
    try:
        watched, plain = opened(engine, watched=True), opened(engine, watched=False)
        step_together(engine, watched)
        step_together(engine, plain)
        for ours, theirs in zip(watched, plain, strict=True):
            assert [r.emitted_ids for r in ours.records] == [r.emitted_ids for r in theirs.records]
            mine, looked = ours.attention(1), theirs.attention(1)
            np.testing.assert_allclose(mine.result(), looked.result(), atol=1e-6)
            assert mine.result().dtype == np.float32
    finally:
        engine.close()


def test_being_watched_changes_no_bit_of_a_step(engine):
    for ours, theirs in zip(opened(engine, watched=True), opened(engine, watched=False), strict=True):
        for _ in range(2):
            mine, other = ours.step().result(), theirs.step().result()
            assert mine.draw == other.draw
            assert np.array_equal(mine.candidates.logits, other.candidates.logits)


def test_only_the_newest_step_holds_its_attention_and_it_counts_as_captured(engine):
    (ours,), (theirs,) = (opened(engine, watched=watched, lengths=(9,)) for watched in (True, False))
    for step in range(1, 4):
        counted = [session.step().result().memory.capture_bytes for session in (ours, theirs)]
        rows = ours.attention(step).result()
        assert counted[0] - counted[1] == rows.nbytes
        assert not rows.flags.writeable
        assert not is_there(engine, ours, step - 1)
    np.testing.assert_allclose(ours.attention(2).result(), theirs.attention(2).result(), atol=1e-6)


def test_attention_goes_with_the_step_it_belongs_to(engine):
    (session,) = opened(engine, watched=True, lengths=(9,))
    session.step().result()
    session.rewind(0).result()
    session.step().result()
    assert session.attention(1).result().shape == (2, 4, 10)
    session.release().result()
    assert session._state.ring.num_bytes == 0
    assert not is_there(engine, session, 1)
    session.close().result()
    with pytest.raises(SessionError, match="closed"):
        session.attention(1)


def test_a_fork_is_watched_too(engine):
    (session,) = opened(engine, watched=True, lengths=(9,))
    copy = session.fork(0).result()
    copy.step().result()
    assert is_there(engine, copy, 1)


def test_a_model_that_expands_what_it_caches_is_replayed_when_looked_at():
    engine = tiny_engine("deepseek_v3")
    try:
        (session,) = opened(engine, watched=True, lengths=(9,))
        session.step().result()
        assert not is_there(engine, session, 1)
        np.testing.assert_allclose(session.attention(1).result().sum(-1), 1.0, atol=1e-5)
    finally:
        engine.close()
