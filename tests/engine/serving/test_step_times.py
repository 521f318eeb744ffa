"""Whose time is whose, on a clock that moves only when a layer runs or a token is sampled: every number is exact."""

from __future__ import annotations

import pytest

from engine import session
from engine.decode import stepping
from engine.forward import forward_pass, model_runner
from engine.forward.forward_pass import ForwardPass
from engine.llm_engine import LLMEngine
from engine.measure import clocks
from engine.records import StepRecord
from engine.serving import server
from tests.engine.architectures import tiny_engine
from tests.engine.holding import hold

LAYERS = 2
LAYER_MS, PROMPT_LAYER_MS, SAMPLE_MS = 2.0, 30.0, 5.0  # a layer of a decode step, one of a prefill's chunk, one draw
STEP_MS = LAYERS * LAYER_MS
SHORT = (40, 50, 60, 70)
LONG = tuple(3 + i % 200 for i in range(1_000))  # four chunks of 256 and less


class Clock:
    def __init__(self) -> None:
        self.ms = 0.0

    def __call__(self) -> float:
        return self.ms


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    for module in (forward_pass, clocks, model_runner, server, session, stepping):
        monkeypatch.setattr(module, "now_ms", made)
    let_others_in, sample = ForwardPass.let_others_in, stepping.sample

    def layer(forward: ForwardPass) -> None:
        made.ms += LAYER_MS if forward.num_new == 1 else PROMPT_LAYER_MS
        let_others_in(forward)

    def sampled(*args, **kwargs):
        made.ms += SAMPLE_MS
        return sample(*args, **kwargs)

    monkeypatch.setattr(ForwardPass, "let_others_in", layer)
    monkeypatch.setattr(stepping, "sample", sampled)
    return made


@pytest.fixture
def engine(clock):
    made = tiny_engine(context_limit=2_048, prefix_bytes=100_000_000)
    yield made
    made.close()


def opened(engine: LLMEngine, count: int) -> list[session.DecodeSession]:
    sessions = [engine.create_session(seed=i) for i in range(count)]
    for made in sessions:
        made.prefill(SHORT).result()
    return sessions


def parts(record: StepRecord) -> tuple[float, float, float, float, float]:
    times = record.timing
    return times.wait_ms, times.forward_ms, times.sample_ms, times.other_ms, times.total_ms


def test_in_a_batch_of_eight_the_sampling_of_those_before_is_waiting_and_nothing_is_other(engine, clock):
    sessions = opened(engine, 8)
    release = hold(engine)
    asked = [made.step() for made in sessions]
    clock.ms += 100
    release.set()
    records = [future.result() for future in asked]
    assert [r.batch_size for r in records] == [8] * 8
    for place, record in enumerate(records):
        before = 100 + place * SAMPLE_MS
        assert parts(record) == (before, STEP_MS, SAMPLE_MS, 0.0, before + STEP_MS + SAMPLE_MS)


def test_a_step_alone_waits_for_nobody(engine):
    (made,) = opened(engine, 1)
    assert parts(made.step().result()) == (0.0, STEP_MS, SAMPLE_MS, 0.0, STEP_MS + SAMPLE_MS)


def test_a_prefill_of_a_thousand_tokens_beside_seven_steppers_has_their_turns_as_waiting(engine):
    steppers = opened(engine, 7)
    pasting = engine.create_session()
    release = hold(engine)
    steps = [[made.step() for _ in range(30)] for made in steppers]
    prefill = pasting.prefill(LONG)
    release.set()
    record = prefill.result()
    for made in steps:
        assert all(future.result().batch_size == 7 for future in made)
    forward_ms = 4 * LAYERS * PROMPT_LAYER_MS
    wait, forward, sample, other, total = parts(record)
    assert (forward, sample, other) == (forward_ms, SAMPLE_MS, 0.0)
    assert record.forwards == 4
    assert wait == total - forward_ms - SAMPLE_MS
    turn_ms = STEP_MS + 7 * SAMPLE_MS
    turns = wait / turn_ms
    assert turns == int(turns) and turns >= 4 + 3, "a turn before each chunk, and one between its layers at least"


def test_who_waits_for_another_ones_prefill_of_the_same_prompt_was_waiting_and_read_nothing(engine):
    first, second = engine.create_session(), engine.create_session()
    release = hold(engine)
    futures = [first.prefill(LONG), second.prefill(LONG)]
    release.set()
    own, copied = (future.result() for future in futures)
    forward_ms = 4 * LAYERS * PROMPT_LAYER_MS
    assert parts(own) == (0.0, forward_ms, SAMPLE_MS, 0.0, forward_ms + SAMPLE_MS)
    assert parts(copied) == (forward_ms + SAMPLE_MS, 0.0, SAMPLE_MS, 0.0, forward_ms + 2 * SAMPLE_MS)
    assert (copied.reused_tokens, copied.forwards, copied.logit_rows) == (1_000, 0, 0)


def test_a_prompt_that_shares_two_chunks_runs_two(engine):
    first, second = engine.create_session(), engine.create_session()
    first.prefill(LONG).result()
    record = second.prefill((*LONG[:600], *LONG[1:401])).result()
    assert (record.reused_tokens, record.forwards) == (512, 2)
    assert parts(record)[1] == 2 * LAYERS * PROMPT_LAYER_MS
