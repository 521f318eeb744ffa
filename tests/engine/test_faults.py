"""Faults, each put in by hand: they reach one session, the engine goes on, and what hangs is seen."""

from __future__ import annotations

import time

import pytest
import torch

from engine.config import SamplingParams
from engine.errors import EngineFault, EngineStopped, LoupeError
from engine.llm_engine import LLMEngine
from engine.session import DecodeSession
from tests.engine.architectures import tiny_engine
from tests.engine.holding import hold

PROMPT = (40, 50, 60, 70)
WARM = SamplingParams(temperature=0.9, top_k=40)


@pytest.fixture
def engine():
    made = tiny_engine()
    yield made
    made.close()


def opened(engine: LLMEngine, count: int) -> list[DecodeSession]:
    sessions = [engine.create_session(sampling=WARM, seed=i) for i in range(count)]
    for session in sessions:
        session.prefill(PROMPT).result()
    return sessions


def failing_for(session: DecodeSession, call, error: Exception):
    """`call`, but for one session's state it raises."""

    def wrapped(state, *args, **kwargs):
        if state is session._state:
            raise error
        return call(state, *args, **kwargs)

    return wrapped


def out_of_memory(engine: LLMEngine, monkeypatch: pytest.MonkeyPatch, times: int) -> list[int]:
    """The next `times` forwards find no memory. Returns the batch sizes that were tried."""
    run, tried = engine.stepper.runner.forward, []

    def forward(batch, **how):
        tried.append(len(batch))
        if len(tried) <= times:
            raise torch.OutOfMemoryError("no memory left")
        return run(batch, **how)

    monkeypatch.setattr(engine.stepper.runner, "forward", forward)
    return tried


@pytest.mark.parametrize("error", [ValueError("odd"), ZeroDivisionError(), RuntimeError("kernel")], ids=repr)
def test_a_stop_rule_that_raises_reaches_its_session_alone_and_leaves_it_as_it_was(engine, monkeypatch, error):
    broken, sound = opened(engine, 2)
    before, kv_len = broken.recipe, broken._state.store.length
    with monkeypatch.context() as patch:
        memory = engine.stepper.memory  # the last thing a record asks for: the token is in place by then
        patch.setattr(engine.stepper, "memory", failing_for(broken, memory, error))
        release = hold(engine)
        futures = [broken.step(), sound.step()]
        release.set()
        with pytest.raises(EngineFault) as caught:
            futures[0].result()
        assert type(error).__name__ in caught.value.detail
        assert futures[1].result().batch_size == 2
    assert (broken.recipe, broken._state.store.length) == (before, kv_len)
    assert broken._state.recipe() == before
    (alone,) = opened(engine, 1)
    assert broken.step().result().emitted_ids == alone.step().result().emitted_ids


def test_a_verdict_that_raises_before_the_forward_reaches_its_session_alone(engine, monkeypatch):
    broken, sound = opened(engine, 2)
    check = engine.stepper.require_unfinished
    monkeypatch.setattr(engine.stepper, "require_unfinished", failing_for(broken, check, KeyError("rule")))
    release = hold(engine)
    futures = [broken.step(), sound.step()]
    release.set()
    with pytest.raises(EngineFault) as caught:
        futures[0].result()
    assert "KeyError" in caught.value.detail
    assert futures[1].result().index == 1


def test_sampling_that_raises_reaches_its_session_alone(engine, monkeypatch):
    from engine.decode import stepping

    broken, sound = opened(engine, 2)
    draw = stepping.sample

    def sample(logits, context, sampling, *, seed, **how):
        if seed == 0:
            raise IndexError("no such candidate")
        return draw(logits, context, sampling, seed=seed, **how)

    monkeypatch.setattr(stepping, "sample", sample)
    release = hold(engine)
    futures = [broken.step(), sound.step()]
    release.set()
    with pytest.raises(EngineFault) as caught:
        futures[0].result()
    assert "IndexError" in caught.value.detail
    assert futures[1].result().index == 1
    assert broken._state.store.length == len(PROMPT)
    assert engine.counters().failures == 1


def test_a_session_that_cannot_be_published_fails_alone(engine, monkeypatch):
    broken, sound = opened(engine, 2)
    monkeypatch.setattr(broken, "_publish", lambda: 1 / 0)
    release = hold(engine)
    futures = [broken.step(), sound.step()]
    release.set()
    with pytest.raises(EngineFault) as caught:
        futures[0].result()
    assert "ZeroDivisionError" in caught.value.detail
    assert futures[1].result().index == 1


def test_a_fault_of_the_engine_itself_fails_what_waits_and_the_thread_goes_on(engine, monkeypatch):
    (session,) = opened(engine, 1)
    server = engine._ready.result()
    with monkeypatch.context() as patch:
        patch.setattr(server.scheduler, "plan", lambda waiting: 1 / 0)
        with pytest.raises(EngineStopped, match="Ask again"):
            session.step().result(timeout=30)
    assert engine.is_alive
    assert session.step().result(timeout=30).index == 1


def test_out_of_memory_sheds_idle_sessions_and_the_step_is_taken_after_all(engine, monkeypatch):
    idle, stepping = opened(engine, 2)
    tried = out_of_memory(engine, monkeypatch, times=1)
    assert stepping.step().result().index == 1
    assert tried == [1, 1]
    assert idle._state.is_released
    assert engine.counters().evictions == 1
    assert engine.counters().prefix_bytes == 0


def test_out_of_memory_with_nothing_left_to_shed_is_told_to_the_session(engine, monkeypatch):
    (session,) = opened(engine, 1)
    tried = out_of_memory(engine, monkeypatch, times=2)
    with pytest.raises(LoupeError, match="not enough memory"):
        session.step().result()
    assert tried == [1, 1], "the shared prompt was shed, and the step tried once more"
    assert session.step().result().index == 1


def test_a_prefill_that_finds_no_memory_sheds_and_begins_again_once(engine, monkeypatch):
    (idle,) = opened(engine, 1)
    tried = out_of_memory(engine, monkeypatch, times=1)
    session = engine.create_session()
    assert session.prefill((9, 8, 7)).result().index == 0
    assert tried == [1, 1]
    assert idle._state.is_released


def test_a_prefill_that_finds_no_memory_twice_fails_and_its_session_stays(engine, monkeypatch):
    session, _idle = opened(engine, 2)
    before = session.recipe
    tried = out_of_memory(engine, monkeypatch, times=2)
    with pytest.raises(LoupeError, match="not enough memory"):
        session.prefill((9, 8, 7)).result()
    assert tried == [1, 1]
    assert session.recipe == before


def test_a_forward_that_hangs_is_seen_by_its_heartbeat(engine):
    (session,) = opened(engine, 1)
    release = hold(engine)
    waiting = session.step()
    time.sleep(0.05)
    first = engine.health()
    time.sleep(0.05)
    later = engine.health()
    assert (first.alive, first.busy, first.waiting) == (True, True, 2)
    assert later.heartbeat_age_s >= first.heartbeat_age_s + 0.05
    assert later.is_stuck(after_s=0.1)
    assert not later.is_stuck(after_s=60)
    release.set()
    waiting.result()


def test_an_idle_engine_keeps_its_heart_beating(engine, monkeypatch):
    monkeypatch.setattr("engine.llm_engine.HEARTBEAT_S", 0.01)
    opened(engine, 1)  # wakes the thread, which sleeps for the shorter time from now on
    before = engine.heartbeat_ms
    deadline = time.monotonic() + 30
    while engine.heartbeat_ms == before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert engine.heartbeat_ms > before
    assert engine.health().waiting == 0


def test_a_thread_that_dies_fails_what_waits_and_takes_nothing_more(engine, monkeypatch):
    first, second = opened(engine, 2)
    monkeypatch.setattr(engine.stepper, "decode", lambda *_: _die())
    release = hold(engine)
    futures = [first.step(), second.step()]
    release.set()
    for future in futures:
        with pytest.raises(EngineStopped):
            future.result(timeout=30)
    engine._thread.join(timeout=30)
    assert not engine.is_alive
    with pytest.raises(EngineStopped):
        first.step()


def _die():
    raise SystemExit("the thread is gone")


def test_what_failed_is_for_the_log_and_not_in_the_message(engine, monkeypatch, caplog):
    (session,) = opened(engine, 1)
    monkeypatch.setattr(
        engine.stepper.runner, "forward", lambda *_, **__: (_ for _ in ()).throw(OSError("/srv/secret"))
    )
    with pytest.raises(EngineFault) as caught:
        session.step().result()
    assert "secret" not in str(caught.value)
    assert caught.value.detail == "OSError: /srv/secret"
    assert "/srv/secret" in caplog.text


def test_a_closed_engine_is_stuck(engine):
    engine.close()
    assert engine.health().is_stuck(after_s=60)


def test_counters_say_how_many_shared_each_forward_and_how_long_they_waited(engine):
    sessions = opened(engine, 3)
    release = hold(engine)
    futures = [session.step() for session in sessions]
    time.sleep(0.05)
    release.set()
    for future in futures:
        future.result()
    sessions[0].step().result()
    counters = engine.counters()
    assert counters.batch_sizes == ((1, 1), (3, 1))
    assert (counters.decode_tokens, counters.sessions, counters.prefills) == (4, 3, 3)
    assert counters.reused_tokens == 2 * len(PROMPT), "the second and the third opened what the first had prefilled"
    assert [f.batch_size for f in counters.recent] == [3, 1]
    assert min(counters.recent[0].waits_ms) >= 50
    assert counters.wait_ms >= 150


def test_counters_can_be_read_while_a_forward_hangs(engine):
    (session,) = opened(engine, 1)
    release = hold(engine)
    step = session.step()
    assert engine.counters().waiting == 2
    release.set()
    step.result()
