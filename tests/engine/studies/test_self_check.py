"""The live self-test passes on honest numbers, and fails when any of them is wrong."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from engine.config import ChosenToken, EngineConfig, SamplingParams
from engine.llm_engine import LLMEngine
from engine.records import Check
from engine.session import DecodeSession
from engine.studies.self_check import check_numbers
from tests.engine.architectures import ARCHITECTURES, loaded, tiny_engine, tiny_model

EVERYTHING_ON = SamplingParams(temperature=0.8, top_k=60, top_p=0.9, min_p=0.02, repetition_penalty=1.2)


def checked(session: DecodeSession) -> dict[str, Check]:
    return {check.name: check for check in check_numbers(session).result()}


def failing(session: DecodeSession) -> set[str]:
    return {name for name, check in checked(session).items() if not check.passed}


@pytest.fixture
def engine():
    made = tiny_engine()
    yield made
    made.close()


@pytest.fixture
def session(engine):
    made = engine.create_session(sampling=EVERYTHING_ON, seed=6)
    made.prefill((40, 50, 60, 70)).result()
    for _ in range(5):
        made.step().result()
    return made


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_check_passes_on_every_architecture(name):
    engine = tiny_engine(name)
    try:
        session = engine.create_session(sampling=EVERYTHING_ON, seed=6)
        session.prefill(tuple(range(40, 60))).result()
        for _ in range(3):
            session.step().result()
        assert failing(session) == set()
    finally:
        engine.close()


def test_checking_moves_nothing(session):
    before, kv_len = session.recipe, session.records[-1].kv_len
    first = checked(session)
    assert session.recipe == before
    assert checked(session) == first
    assert session.step().result().kv_len == kv_len + 1


def test_the_checks_say_what_was_compared_in_numbers(session):
    found = checked(session)
    assert set(found) == {
        "greedy ids", "tokens drawn again", "logits", "attention", "rows of attention", "kept tokens", "cache bytes",
    }  # fmt: skip
    assert found["attention"].compared == "2 layers x 4 heads over 9 keys, against eager attention"
    assert "9 tokens: formula 4,608 B" in found["cache bytes"].compared  # 9 x 2 x 2 layers x 2 heads x 16 x 4 B


def test_a_token_that_was_never_drawn_is_found(session):
    state = session._state
    state.chosen[2] = ChosenToken((state.chosen[2].token_id + 1) % 300, False, EVERYTHING_ON)
    assert "tokens drawn again" in failing(session)


def test_a_forced_token_is_not_held_against_the_draw(session):
    session.force(99).result()
    session.step().result()
    assert failing(session) == set()


def test_a_seed_changed_on_the_way_is_not_held_against_the_draw(session):
    session.configure(seed=1234).result()
    session.step().result()
    session.step().result()
    assert failing(session) == set()


def test_a_damaged_key_in_the_cache_is_found(session):
    with torch.inference_mode():
        session._state.store._keys[0][:, 1] *= 1000
    assert {"attention"} <= failing(session)


def test_a_wrong_formula_for_the_cache_is_found(session):
    stepper = session.engine.stepper
    stepper.info = dataclasses.replace(stepper.info, kv_bytes_per_token=stepper.info.kv_bytes_per_token * 3)
    found = checked(session)["cache bytes"]
    assert not found.passed
    assert found.difference == 2 * 4608


def test_a_model_that_computes_something_else_than_its_weights_say_is_found(session):
    head = session.engine.model.lm_head
    head.forward = lambda hidden: -torch.nn.functional.linear(hidden, head.weight)  # the oracle keeps its own
    found = failing(session)
    del head.forward
    assert {"greedy ids"} <= found


def test_the_models_own_generation_settings_do_not_reach_the_oracle():
    model = tiny_model("llama")
    plain = LLMEngine(loaded(model), EngineConfig(fast_kernels=False))
    session = plain.create_session(sampling=SamplingParams(temperature=0))
    session.prefill((40, 50, 60, 70)).result()
    second = session.step().result().emitted_ids[0]
    plain.close()
    model.generation_config.eos_token_id = second  # `generate` would stop there, two tokens in
    engine = LLMEngine(loaded(model), EngineConfig(fast_kernels=False))
    session = engine.create_session(sampling=SamplingParams(temperature=0))
    session.prefill((40, 50, 60, 70)).result()
    assert failing(session) == set()
    engine.close()


def test_the_oracle_shares_the_weights_and_has_stock_attention(engine):
    ours = {p.data_ptr() for p in engine.model.parameters()}
    assert {p.data_ptr() for p in engine.stock.parameters()} == ours
    assert engine.stock.config._attn_implementation == "eager"
    assert engine.model.config._attn_implementation != "eager"
    assert torch.is_inference_mode_enabled() is False
