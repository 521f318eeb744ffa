"""What studies, races and checks hold beside the sessions counts in the budget of all caches, while they hold it."""

from __future__ import annotations

import pytest

from engine.config import Budgets, SamplingParams
from engine.errors import LoupeError
from engine.forward.kv_store import KVStore
from engine.forward.scratch import Scratch
from engine.llm_engine import LLMEngine
from engine.studies.chunk_sizes import Chunks
from engine.studies.claim_checks import check
from engine.studies.key_change import change_first_token
from engine.studies.prefill_and_decode import Phases
from engine.studies.self_check.check_numbers import check_numbers
from engine.studies.uncached import Race
from tests.engine.architectures import tiny_engine
from tests.engine.serving.test_session_table import PER_SESSION, PER_TOKEN, after_a_turn, opened

IDS = (40, 50, 60, 70, 80, 90)


def _race(engine, report):
    return Race(IDS, 3, SamplingParams()).start(engine, report)


def _phases(engine, report):
    study = Phases(IDS, [(6, 3), (3, 6)])
    return engine.study("phases", lambda runner: study.run(runner, report))


def _chunks(engine, report):
    study = Chunks(IDS)
    return engine.study("chunks", lambda runner: study.run(runner, report))


def _claim(engine, report):
    return check(engine, "positions", report)


STUDIES = {"race": _race, "phases": _phases, "chunk sizes": _chunks, "claim check": _claim}
LEAST = {"race": 1, "phases": 2, "chunk sizes": 2, "claim check": 1}  # caches held at the same time


@pytest.fixture
def room_for_two():
    made = tiny_engine(budgets=Budgets(kv_bytes=2 * PER_SESSION))
    yield made
    made.close()


@pytest.fixture
def room_for_three():
    made = tiny_engine(budgets=Budgets(kv_bytes=3 * PER_SESSION))
    yield made
    made.close()


def watch(engine: LLMEngine) -> list[int]:
    """Bytes of what no session owns, after each turn."""
    scratch, seen = engine.sessions.scratch, []
    measure = scratch.measure

    def measured() -> None:
        measure()
        seen.append(scratch.reserved_bytes)

    scratch.measure = measured  # type: ignore[method-assign]
    return seen


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_counts_while_it_runs_and_idle_caches_give_way_to_it(room_for_three, name):
    idle = [opened(room_for_three) for _ in range(4 - LEAST[name])]
    seen = watch(room_for_three)
    STUDIES[name](room_for_three, lambda done, total: None).result()
    after_a_turn(room_for_three)
    assert max(seen) >= LEAST[name] * PER_SESSION
    assert all(held % PER_SESSION == 0 for held in seen)
    assert idle[0]._state.is_released
    assert seen[-1] == 0
    assert room_for_three.counters().kv_reserved_bytes <= 3 * PER_SESSION


def test_a_changed_token_and_a_self_check_count_beside_their_session(room_for_three):
    idle, session = opened(room_for_three), opened(room_for_three)
    seen = watch(room_for_three)
    change_first_token(session, 99, lambda done, total: None).result()
    assert max(seen) == 2 * PER_SESSION
    assert idle._state.is_released and not session._state.is_released
    del seen[:]
    check_numbers(session).result()
    after_a_turn(room_for_three)
    held = session.records[-1].kv_len * PER_TOKEN
    assert held in seen or held + PER_SESSION in seen, "transformers' own cache of the same tokens"
    assert seen[-1] == 0


def test_a_study_that_was_given_up_holds_nothing_although_its_error_is_kept(room_for_two):
    def given_up(done: int, total: int) -> None:
        raise LoupeError("enough")

    failed = check(room_for_two, "positions", given_up)
    error = failed.exception()
    after_a_turn(room_for_two)
    assert str(error) == "enough"
    assert room_for_two.counters().kv_reserved_bytes == 0


def test_a_store_counts_as_long_as_somebody_holds_it():
    scratch = Scratch()
    store = scratch.count(KVStore(1))
    scratch.measure()
    assert scratch.reserved_bytes == 0
    with scratch.holding(1_000):
        scratch.measure()
        assert (scratch.reserved_bytes, scratch.live_bytes) == (1_000, 1_000)
    del store
    scratch.measure()
    assert (scratch.reserved_bytes, scratch.live_bytes) == (0, 0)
