"""One thread, many sessions: order, sharing a forward, and faults that stay where they belong."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import Future

import numpy as np
import pytest
import torch

from engine import llm_engine
from engine.config import EngineConfig, SamplingParams, StopRules
from engine.errors import LoupeError, ModelNotFound, SessionFinished
from engine.llm_engine import LLMEngine
from engine.models.loader import load_model
from tests.engine.architectures import tiny_engine, tiny_llama_folder
from tests.engine.holding import ask_between_layers, hold

WARM = SamplingParams(temperature=1.0, top_k=50)


@pytest.fixture
def engine():
    made = tiny_engine()
    yield made
    made.close()


def prefilled(engine: LLMEngine, count: int, **settings):
    sessions = [engine.create_session(sampling=WARM, seed=i, **settings) for i in range(count)]
    for i, session in enumerate(sessions):
        session.prefill(tuple(range(10, 14 + 3 * i))).result()
    return sessions


def test_no_other_thread_keeps_the_interpreter_from_the_engine_for_long():
    before = sys.getswitchinterval()
    try:
        sys.setswitchinterval(0.005)
        tiny_engine().close()
        assert sys.getswitchinterval() == pytest.approx(50e-6)
    finally:
        sys.setswitchinterval(before)


def test_a_model_is_loaded_and_run_by_one_thread(tmp_path, monkeypatch):
    threads = []

    def load_seen(*asked):
        threads.append(threading.get_ident())
        return load_model(*asked)

    monkeypatch.setattr(llm_engine, "load_model", load_seen)
    engine = LLMEngine.start(EngineConfig(model=tiny_llama_folder(tmp_path), device="cpu"))
    engine.model.register_forward_hook(lambda *_: threads.append(threading.get_ident()))
    session = engine.create_session()
    session.prefill((5, 6, 7)).result()
    session.step().result()
    engine.close()
    assert len(threads) == 3
    assert len(set(threads)) == 1
    assert threading.get_ident() not in threads


def test_what_a_model_is_refused_for_reaches_whoever_starts_the_engine(tmp_path):
    with pytest.raises(ModelNotFound, match="no folder or file"):
        LLMEngine.start(EngineConfig(model=str(tmp_path / "gone")))


def test_steps_that_wait_together_share_one_forward(engine):
    sessions = prefilled(engine, 3)
    release = hold(engine)
    futures = [session.step() for session in sessions]
    release.set()
    assert [f.result().batch_size for f in futures] == [3, 3, 3]


def test_a_session_in_a_batch_draws_what_it_draws_alone(engine):
    alone = prefilled(engine, 4)
    expected = [[s.step().result().emitted_ids for _ in range(6)] for s in alone]
    sessions = prefilled(engine, 4)
    release = hold(engine)
    futures = [[s.step() for _ in range(6)] for s in sessions]
    release.set()
    assert [[f.result().emitted_ids for f in row] for row in futures] == expected
    assert futures[0][0].result().batch_size == 4


def test_a_hundred_presses_of_step_make_a_hundred_steps_in_order(engine):
    pressed = engine.create_session(sampling=WARM, seed=1, stop=StopRules(max_new_tokens=200))
    pressed.prefill((20, 21, 22)).result()
    records = [f.result() for f in [pressed.step() for _ in range(100)]]
    assert [r.index for r in records] == list(range(1, 101))
    patient = engine.create_session(sampling=WARM, seed=1, stop=StopRules(max_new_tokens=200))
    patient.prefill((20, 21, 22)).result()
    for _ in range(100):
        patient.step().result()
    assert patient.recipe == pressed.recipe


def test_one_session_at_its_end_does_not_stop_the_others(engine):
    done, going = prefilled(engine, 2)
    done.configure(stop=StopRules(max_new_tokens=1)).result()
    release = hold(engine)
    ended, went = done.step(), going.step()
    release.set()
    with pytest.raises(SessionFinished):
        ended.result()
    assert went.result().index == 1


def test_a_fault_in_one_sessions_forward_reaches_that_session_alone(engine):
    broken, sound = prefilled(engine, 2)
    before = sound.recipe
    release = hold(engine)
    store = broken._state.store
    store._block = store._keys[1] = torch.zeros(1)  # a corrupted cache
    failed, went = broken.step(), sound.step()
    release.set()
    with pytest.raises(LoupeError, match="failed inside the model"):
        failed.result()
    assert went.result().index == 1
    assert sound.recipe.token_ids[:-1] == before.token_ids
    assert engine.is_alive


def test_a_long_prefill_lets_others_step_between_its_chunks():
    engine = tiny_engine(prefill_chunk=1)
    try:
        (going,) = prefilled(engine, 1)
        release = hold(engine)
        slow = engine.create_session()
        prompt: Future = slow.prefill(tuple(range(10, 90)))
        stepped = going.step()
        release.set()
        stepped.result()
        assert not prompt.done(), "the step was served before the 80 chunks were through"
        prompt.result()
    finally:
        engine.close()


def test_others_step_between_two_layers_of_one_prefill_chunk(engine, monkeypatch):
    (going,) = prefilled(engine, 1)
    stepped, done = ask_between_layers(engine, monkeypatch, going.step, 2)
    record = engine.create_session().prefill(tuple(range(10, 110))).result()
    assert [f.result().index for f in stepped] == [1, 2]
    assert done == [True, True]
    assert record.timing.total_ms >= record.timing.forward_ms + sum(f.result().timing.forward_ms for f in stepped)


def test_a_prefill_that_stopped_for_others_gives_the_bits_of_one_that_did_not(monkeypatch):
    engine = tiny_engine(prefix_bytes=0)
    try:
        alone, interrupted, (going,) = engine.create_session(), engine.create_session(), prefilled(engine, 1)
        expected = alone.prefill(tuple(range(10, 110))).result()
        expected_step = alone.step().result()
        stepped, _ = ask_between_layers(engine, monkeypatch, going.step, 2)
        found = interrupted.prefill(tuple(range(10, 110))).result()
        assert [future.result().index for future in stepped] == [1, 2]
        assert np.array_equal(found.candidates.logits, expected.candidates.logits)
        assert np.array_equal(found.kv_norms, expected.kv_norms)
        assert np.array_equal(interrupted.step().result().candidates.logits, expected_step.candidates.logits)
    finally:
        engine.close()


def test_a_look_is_answered_between_two_layers_of_a_prefill_chunk(engine, monkeypatch):
    (going,) = prefilled(engine, 1)
    expected = going.attention(0).result()
    looks, done = ask_between_layers(engine, monkeypatch, lambda: going.attention(0), 1)
    engine.create_session().prefill(tuple(range(10, 110))).result()
    assert done == [True]
    assert np.array_equal(looks[0].result(), expected)


def test_a_look_that_needs_a_rebuild_waits_for_its_turn_as_long_work(engine, monkeypatch):
    (released,) = prefilled(engine, 1)
    expected = released.attention(0).result()
    released.release().result()
    looks, done = ask_between_layers(engine, monkeypatch, lambda: released.attention(0), 1)
    engine.create_session().prefill(tuple(range(10, 110))).result()
    assert done == [False]
    assert np.allclose(looks[0].result(), expected, atol=1e-6)


def test_a_step_between_layers_draws_what_it_draws_otherwise(engine, monkeypatch):
    one, other = (engine.create_session(sampling=WARM, seed=5) for _ in range(2))
    for session in (one, other):
        session.prefill((20, 21, 22)).result()
    expected = [one.step().result() for _ in range(2)]
    stepped, _ = ask_between_layers(engine, monkeypatch, other.step, 2)
    engine.create_session().prefill(tuple(range(10, 110))).result()
    for future, record in zip(stepped, expected, strict=True):
        assert np.array_equal(future.result().candidates.logits, record.candidates.logits)
        assert future.result().emitted_ids == record.emitted_ids


def test_a_step_that_fails_between_layers_leaves_the_prefill_alone(engine, monkeypatch):
    (ended,) = prefilled(engine, 1, stop=StopRules(max_new_tokens=1))
    stepped, _ = ask_between_layers(engine, monkeypatch, ended.step, 1)
    assert engine.create_session().prefill(tuple(range(10, 110))).result().index == 0
    with pytest.raises(SessionFinished):
        stepped[0].result()


def test_a_session_never_steps_in_the_middle_of_its_own_prefill(engine, monkeypatch):
    (session,) = prefilled(engine, 1)
    stepped, _ = ask_between_layers(engine, monkeypatch, session.step, 1)
    prompt = session.prefill(tuple(range(10, 110)))
    assert prompt.result().kv_len == 100
    assert stepped[0].result().kv_len == 101


def test_a_solo_session_steps_alone_and_repeats_bit_for_bit(engine):
    alone = engine.create_session(sampling=WARM, seed=3)
    alone.prefill((20, 21, 22)).result()
    expected = [alone.step().result() for _ in range(4)]
    others = prefilled(engine, 3)
    solo = engine.create_session(sampling=WARM, seed=3, solo=True)
    solo.prefill((20, 21, 22)).result()
    for record in expected:
        release = hold(engine)
        futures = [session.step() for session in [*others, solo]]
        release.set()
        assert [f.result().batch_size for f in futures] == [3, 3, 3, 1]
        assert np.array_equal(futures[-1].result().candidates.logits, record.candidates.logits)


def test_clicks_are_served_before_autoplay():
    engine = tiny_engine(max_batch=1)
    try:
        playing, clicking = prefilled(engine, 2)
        served: list[str] = []
        release = hold(engine)
        for name, session, auto in (("auto", playing, True), ("click", clicking, False)):
            session.step(auto=auto).add_done_callback(lambda _, name=name: served.append(name))
        last = playing.step(auto=True)
        release.set()
        last.result()
        assert served == ["click", "auto"]
    finally:
        engine.close()


def test_a_step_that_was_given_up_while_it_waited_is_never_run(engine):
    (session,) = prefilled(engine, 1)
    release = hold(engine)
    given_up, wanted = session.step(), session.step()
    assert given_up.cancel()
    release.set()
    assert wanted.result().index == 1


def test_a_step_whose_rebuild_was_cancelled_fails_and_the_next_one_rebuilds():
    engine = tiny_engine(prefill_chunk=1)
    try:
        (session,) = prefilled(engine, 1)
        release = hold(engine)
        session.release()
        step = session.step()
        session.cancel()
        release.set()
        with pytest.raises(LoupeError, match="rebuild was cancelled"):
            step.result(timeout=30)
        assert session.step().result(timeout=30).index == 1
    finally:
        engine.close()


def test_looks_of_many_sessions_share_a_turn(engine, monkeypatch):
    monkeypatch.setattr("engine.serving.server.BRIEF_MS", 10_000.0)
    sessions = prefilled(engine, 6)
    turns = []
    server = engine._ready.result()
    brief = server._brief
    server._brief = lambda heads, keys: (turns.append(len(keys)), brief(heads, keys))
    release = hold(engine)
    looks = [session.attention(0) for session in sessions]
    release.set()
    for look in looks:
        look.result()
    assert [t for t in turns if t] == [6]


def test_requests_of_one_session_keep_their_order(engine):
    session = engine.create_session(sampling=WARM)
    release = hold(engine)
    session.prefill((30, 31))
    session.step()
    session.step()
    session.rewind(1)
    session.configure(sampling=SamplingParams(temperature=0.0))
    last = session.step()
    release.set()
    assert last.result().draw.mode == "greedy"
    assert [r.index for r in session.records] == [0, 1, 2]


def test_a_record_is_published_before_its_future_resolves(engine):
    (session,) = prefilled(engine, 1)
    for expected in range(2, 40):
        session.step().result()
        assert len(session.records) == expected


def test_a_record_cannot_be_changed(engine):
    (session,) = prefilled(engine, 1)
    record = session.records[0]
    with pytest.raises(ValueError, match="read-only"):
        record.kv_norms[0] = 1
    with pytest.raises(AttributeError):
        record.kv_len = 9
