"""The record that a session of a batch gets is the one it gets alone, whatever the settings of its neighbours."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest

from engine.config import PRESETS, SamplingParams, StopRules
from engine.errors import NumericalFailure
from engine.forward.model_runner import Feed, ForwardResult, ModelRunner
from engine.llm_engine import LLMEngine
from engine.records import StepRecord
from engine.serving.requests import at_once
from engine.session import DecodeSession
from tests.engine.architectures import tiny_engine

SETTINGS = (
    SamplingParams(),
    PRESETS["greedy"],
    PRESETS["chat defaults"],
    SamplingParams(temperature=1.4, top_p=0.8, min_p=0.01),
    PRESETS["chat defaults"],
    SamplingParams(temperature=0, repetition_penalty=1.5),
)
OF_THE_FORWARD = {"timing", "memory", "batch_size"}  # clocks, the process, and who shared it


def opened(engine: LLMEngine) -> list[DecodeSession]:
    sessions = []
    for seed, sampling in enumerate(SETTINGS):
        rules = StopRules(max_new_tokens=50 + seed, stop_strings=("x" * seed, "ab"))
        session = engine.create_session(sampling=sampling, stop=rules, seed=seed, watched=seed % 2 == 0)
        session.prefill(tuple(range(20, 25 + 4 * seed))).result()
        sessions.append(session)
    return sessions


def each_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of a batch are computed one by one, so that they are those of a session alone to the last bit."""
    forward = ModelRunner.forward

    def apart(self: ModelRunner, batch: list[Feed], **settings: Any) -> ForwardResult:
        results = [forward(self, [feed], **settings) for feed in batch]
        return ForwardResult(tuple(row for result in results for row in result.rows), results[0].forward_ms)

    monkeypatch.setattr(ModelRunner, "forward", apart)


def step_together(engine: LLMEngine, sessions: list[DecodeSession]) -> list[StepRecord | Exception]:
    states = [session._state for session in sessions]
    return engine.submit("batch", at_once(lambda: engine.stepper.decode(states, [0.0] * len(states)))).result()


def assert_same(ours: Any, theirs: Any, where: str) -> None:
    if is_dataclass(ours):
        for field in fields(ours):
            if field.name not in OF_THE_FORWARD:
                assert_same(getattr(ours, field.name), getattr(theirs, field.name), f"{where}.{field.name}")
    elif isinstance(ours, np.ndarray):
        assert ours.dtype == theirs.dtype, where
        assert np.array_equal(ours, theirs), where
    elif isinstance(ours, tuple):
        assert len(ours) == len(theirs), where
        for place, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            assert_same(one, other, f"{where}[{place}]")
    else:
        assert ours == theirs, where


def test_every_field_of_a_record_is_the_same_in_a_batch_of_mixed_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = tiny_engine()
    try:
        each_alone(monkeypatch)
        alone, together = opened(engine), opened(engine)
        for step in range(1, 6):
            batch = step_together(engine, together)
            for place, (session, ours) in enumerate(zip(alone, batch, strict=True)):
                assert_same(ours, session.step().result(), f"session {place}, step {step}")
    finally:
        engine.close()


def test_a_session_whose_logits_are_not_numbers_leaves_the_records_of_its_neighbours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = tiny_engine()
    try:
        alone, together = opened(engine), opened(engine)
        together[2].look(lambda state: state.store.view(0, state.store.length)[0].fill_(float("nan"))).result()
        each_alone(monkeypatch)
        batch = step_together(engine, together)
        assert isinstance(batch[2], NumericalFailure)
        for place in (0, 1, 3, 4, 5):
            assert_same(batch[place], alone[place].step().result(), f"session {place}")
    finally:
        engine.close()
