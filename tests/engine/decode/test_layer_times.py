"""A step's time by layer: every layer once, in order, and the run afterwards as if nobody had looked."""

from __future__ import annotations

import numpy as np
import pytest

from engine.config import SamplingParams
from engine.decode.layer_times import REPLAYS, decoder_layers, layer_times
from engine.errors import UnknownStep
from tests.engine.architectures import ARCHITECTURES, tiny_engine

WARM = SamplingParams(temperature=1.0)


def timed(engine, session, step):
    return session.run(lambda state: layer_times(engine.stepper.runner, state, step)).result(30)


@pytest.fixture
def engine():
    made = tiny_engine("gemma3_text")  # six layers
    yield made
    made.close()


def run_of(engine, seed=3):
    session = engine.create_session(sampling=WARM, seed=seed)
    session.prefill(tuple(range(10, 20))).result()
    return session


def test_every_layer_has_a_time_and_the_head_its_own(engine):
    session = run_of(engine)
    session.step().result()
    found = timed(engine, session, 1)
    assert (found.step, found.replays, len(found.layers_ms)) == (1, REPLAYS, 6)
    assert all(ms > 0 for ms in (*found.layers_ms, found.before_ms, found.head_ms))
    assert found.total_ms == pytest.approx(found.before_ms + sum(found.layers_ms) + found.head_ms)


def test_looking_at_the_layers_changes_nothing(engine):
    looked, plain = run_of(engine), run_of(engine)
    for step in range(1, 6):
        looked.step().result()
        plain.step().result()
        timed(engine, looked, step)
        timed(engine, looked, max(1, step - 2))
    assert [r.emitted_ids for r in looked.records] == [r.emitted_ids for r in plain.records]
    for one, other in zip(looked.records, plain.records, strict=True):
        assert np.array_equal(one.candidates.logits, other.candidates.logits)
        assert one.kv_bytes == other.kv_bytes
    assert not any(layer._forward_pre_hooks or layer._forward_hooks for layer in decoder_layers(engine.stepper.runner))


def test_the_prefill_and_a_step_that_is_not_there_are_refused(engine):
    session = run_of(engine)
    with pytest.raises(UnknownStep, match="Step 0 is the prefill"):
        timed(engine, session, 0)
    with pytest.raises(UnknownStep):
        timed(engine, session, 7)


def test_others_step_between_two_replays(engine):
    session, other = run_of(engine), run_of(engine, seed=4)
    session.step().result()
    generator = layer_times(engine.stepper.runner, session._state, 1)
    pieces = 0
    import torch

    with torch.inference_mode():
        for _ in generator:
            pieces += 1
            other.step().result()
    assert pieces == REPLAYS
    assert len(other.records) == REPLAYS + 1


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_the_layers_of_every_architecture_are_found(name):
    made = tiny_engine(name)
    try:
        assert len(decoder_layers(made.stepper.runner)) == made.info.num_layers
    finally:
        made.close()
