"""Admission and bytes: who is refused, whose cache is released, and what a session finds when it comes back."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from engine.config import Budgets, SamplingParams, StopRules
from engine.errors import EngineFull, PromptTooLong, SessionError
from engine.llm_engine import LLMEngine
from engine.session import DecodeSession
from tests.engine.architectures import tiny_engine
from tests.engine.holding import hold

PER_TOKEN = 2 * 2 * 2 * 16 * 4  # key and value, 2 layers, 2 heads, 16 wide, 4 bytes
PER_SESSION = 64 * PER_TOKEN  # room for 64 tokens
PROMPT = (40, 50, 60, 70)


@pytest.fixture
def room_for_two():
    made = tiny_engine(budgets=Budgets(kv_bytes=2 * PER_SESSION))
    yield made
    made.close()


def opened(engine: LLMEngine, seed: int = 0) -> DecodeSession:
    session = engine.create_session(sampling=SamplingParams(), seed=seed)
    session.prefill(PROMPT).result()
    return session


def after_a_turn(engine: LLMEngine) -> None:
    """Wait until the turn that answered the last request is over."""
    for _ in range(2):
        engine.submit("nobody", lambda: iter(())).result()  # type: ignore[arg-type, return-value]


def test_over_the_budget_the_least_recently_touched_session_loses_its_cache(room_for_two):
    first, second = opened(room_for_two), opened(room_for_two)
    first.step().result()
    third = opened(room_for_two)
    after_a_turn(room_for_two)
    assert [s._state.is_released for s in (first, second, third)] == [False, True, False]
    assert room_for_two.counters().evictions == 1
    assert room_for_two.counters().kv_reserved_bytes == 2 * PER_SESSION


def test_who_comes_back_is_rebuilt_draws_the_same_and_the_record_says_so(room_for_two):
    first = opened(room_for_two, seed=3)
    drawn = [first.step().result().emitted_ids for _ in range(4)]
    first.rewind(1).result()
    recipe = first.recipe
    opened(room_for_two), opened(room_for_two)
    others = [opened(room_for_two) for _ in range(2)]
    after_a_turn(room_for_two)
    assert first._state.is_released
    assert first.recipe == recipe
    records = [first.step().result() for _ in range(3)]
    assert [r.emitted_ids for r in records] == drawn[1:]
    assert [r.rebuilt_tokens for r in records] == [1, 0, 0], "1 drawn; the newest is fed by the step"
    assert [r.recovered_tokens for r in records] == [4, 0, 0], "the prompt, which others had opened too"
    counters = room_for_two.counters()
    assert (counters.rebuilt_tokens, counters.recovered_tokens) == (1, 4)
    assert len(others) == 2


def test_a_prompt_that_nobody_shares_is_prefilled_again_whole():
    engine = tiny_engine(budgets=Budgets(kv_bytes=2 * PER_SESSION), prefix_bytes=0)
    try:
        first = opened(engine)
        first.step().result()
        first.release().result()
        assert engine.counters().releases == 1
        record = first.step().result()
        assert (record.rebuilt_tokens, record.recovered_tokens) == (5, 0)
    finally:
        engine.close()


def test_a_released_session_gives_the_same_bits_whether_its_prompt_was_shared_or_not():
    rows = []
    for prefix_bytes in (0, 64_000_000):
        engine = tiny_engine(prefix_bytes=prefix_bytes, prefill_chunk=16)
        try:
            session = engine.create_session(sampling=SamplingParams(), seed=1)
            session.prefill(tuple(range(40, 80))).result()
            session.release().result()
            rows.append(session.step().result())
        finally:
            engine.close()
    assert np.array_equal(rows[0].candidates.logits, rows[1].candidates.logits)
    assert [r.recovered_tokens for r in rows] == [0, 40]


def test_a_prefill_under_way_counts_against_the_budget_and_what_is_idle_makes_room():
    engine = tiny_engine(budgets=Budgets(kv_bytes=2 * PER_SESSION), prefill_chunk=16)
    try:
        idle = [opened(engine) for _ in range(2)]
        seen: list[tuple[int, list[bool]]] = []
        run = engine.stepper.runner.forward

        def forward(batch, **how):
            seen.append((engine.counters().kv_reserved_bytes, [s._state.is_released for s in idle]))
            return run(batch, **how)

        engine.stepper.runner.forward = forward  # type: ignore[method-assign]
        late = engine.create_session()
        late.prefill(tuple(range(90, 90 + 48))).result()
        assert seen[0] == (2 * PER_SESSION, [False, False]), "before its first piece"
        assert seen[1][1] == [True, False], "after it, one too many is held"
        assert all(held <= 2 * PER_SESSION for held, _ in seen)
    finally:
        engine.close()


def test_a_prefill_that_is_given_up_counts_for_nothing_any_more(room_for_two):
    session = opened(room_for_two)
    before = room_for_two.counters().kv_reserved_bytes
    release = hold(room_for_two)
    given_up = session.prefill(tuple(range(90, 110)))
    session.cancel()
    release.set()
    with pytest.raises(SessionError, match="cancelled"):
        given_up.result()
    assert session._state.incoming is None
    assert room_for_two.counters().kv_reserved_bytes == before


def test_one_session_that_is_larger_than_the_budget_is_not_rebuilt_at_every_step():
    engine = tiny_engine(budgets=Budgets(kv_bytes=1))
    try:
        session = opened(engine)
        assert [session.step().result().rebuilt_tokens for _ in range(3)] == [0, 0, 0]
    finally:
        engine.close()


def test_a_session_that_waits_is_never_released(room_for_two):
    table = room_for_two.sessions
    sessions = [opened(room_for_two) for _ in range(2)]
    after_a_turn(room_for_two)
    table.budgets = Budgets(kv_bytes=1)
    busy = {session.id for session in sessions}
    assert table.keep_within_budget(busy) == 0
    assert table.release_idle(busy) == 0
    assert table.keep_within_budget({sessions[1].id}) == 1
    assert [s._state.is_released for s in sessions] == [True, False]


def test_one_session_too_many_is_refused_and_a_closed_one_makes_room():
    engine = tiny_engine(budgets=Budgets(max_sessions=2))
    try:
        first, _second = opened(engine), opened(engine)
        with pytest.raises(EngineFull, match="All 2 places are taken"):
            engine.create_session()
        with pytest.raises(EngineFull):
            first.fork(0).result()
        first.close().result()
        assert engine.create_session().recipe.token_ids == ()
    finally:
        engine.close()


def test_a_closed_session_says_so_when_it_is_touched(room_for_two):
    session = opened(room_for_two)
    session.close().result()
    with pytest.raises(SessionError, match="was closed"):
        session.prefill(PROMPT)
    with pytest.raises(SessionError, match="was closed"):
        session.step()


def test_twenty_sessions_that_nobody_holds_any_more_leave_no_place_and_no_byte_taken():
    engine = tiny_engine(budgets=Budgets(max_sessions=3))
    gc.freeze()  # what is there already is none of these sessions, and need not be looked through twenty times
    try:
        for seed in range(20):
            session = opened(engine, seed)
            session.step().result()
            after_a_turn(engine)
            del session
            gc.collect()
        after_a_turn(engine)
        counters = engine.counters()
        assert (counters.sessions, counters.kv_live_bytes, counters.kv_reserved_bytes) == (0, 0, 0)
    finally:
        gc.unfreeze()
        engine.close()


def test_a_fork_counts_from_the_moment_it_is_made(room_for_two):
    session = opened(room_for_two)
    branch = session.fork(0).result()
    assert room_for_two.counters().kv_reserved_bytes == 2 * PER_SESSION
    assert room_for_two.counters().kv_live_bytes == 2 * 4 * PER_TOKEN
    assert branch.recipe.prompt_ids == PROMPT


def test_no_session_gets_past_the_budget_of_one_by_its_own_stop_rules():
    budgets = Budgets(session_new_tokens=3, session_kv_bytes=6 * PER_TOKEN)
    engine = tiny_engine(budgets=budgets)
    try:
        session = engine.create_session(stop=StopRules(max_new_tokens=100))
        assert session.recipe.stop == StopRules(max_new_tokens=3, max_kv_bytes=6 * PER_TOKEN)
        session.configure(stop=StopRules(max_new_tokens=50)).result()
        assert session.recipe.stop.max_new_tokens == 3
        session.prefill(PROMPT).result()
        shared = engine.resume(session.recipe).result()
        assert shared.recipe.stop == session.recipe.stop
        with pytest.raises(PromptTooLong, match="The prompt is 7 tokens; a session may hold 6 on this machine"):
            session.prefill((9,) * 7).result()
    finally:
        engine.close()


def test_what_each_session_holds_is_told_by_size_and_without_a_name():
    engine = tiny_engine()
    try:
        short, long = opened(engine), opened(engine)
        engine.create_session()  # holds nothing yet
        for _ in range(3):
            long.step().result()
        released = opened(engine)
        released.release().result()
        after_a_turn(engine)
        assert [taken.live for taken in engine.sessions.each()] == [7 * PER_TOKEN, 4 * PER_TOKEN]
        assert {taken.reserved for taken in engine.sessions.each()} == {PER_SESSION}
        assert short.records  # held until here
    finally:
        engine.close()
