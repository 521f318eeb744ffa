"""The live self-test passes on honest numbers, and fails when any of them is wrong."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from engine.config import ChosenToken, EngineConfig, SamplingParams, StopRules
from engine.decode import inspection, sampling
from engine.errors import NotPrefilled, PromptTooLong, SessionError
from engine.forward import attention
from engine.llm_engine import LLMEngine
from engine.records import Check
from engine.session import DecodeSession
from engine.studies.self_check import study
from engine.studies.self_check.check_numbers import check_numbers
from tests.engine.architectures import ARCHITECTURES, loaded, tiny_engine, tiny_model
from tests.engine.forward.test_rotary import phi3

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
    assert list(found) == [
        "independent model",
        "ids and positions",
        "logits",
        "ranks and histogram",
        "stages",
        "sampled tokens",
        "attention",
        "rows of attention",
        "keys and values",
        "cache bytes",
        "stop rules",
        "text",
        "memory",
        "times",
    ]
    # steps 0, 2, 3 and 5 over 4, 6, 7 and 9 keys, 2 layers x 4 heads
    assert found["attention"].compared.startswith("208 numbers: weights of steps 0, 2, 3, 5")
    assert "9 tokens: formula 4,608 B" in found["cache bytes"].compared  # 9 x 2 x 2 layers x 2 heads x 16 x 4 B
    assert "cannot be computed" in found["memory"].compared
    assert "a clock cannot be read twice" in found["times"].compared


def test_a_token_that_was_never_sampled_is_found(session):
    session._state.chosen[2] = ChosenToken((session._state.chosen[2].token_id + 1) % 300, False, EVERYTHING_ON)
    assert {"ids and positions", "sampled tokens"} <= failing(session)


def run_of(settings: SamplingParams) -> tuple[LLMEngine, DecodeSession]:
    engine = tiny_engine(capture_bytes=0)
    session = engine.create_session(sampling=settings, seed=6)
    session.prefill((40, 50, 60, 70)).result()
    for _ in range(4):
        session.step().result()
    return engine, session


def test_a_temperature_that_is_ignored_is_found(monkeypatch):
    honest = sampling.rules_of
    monkeypatch.setattr(
        sampling,
        "rules_of",
        lambda params: tuple(rule._replace(act=lambda before, context: before) for rule in honest(params)),
    )
    engine, session = run_of(SamplingParams(temperature=0.5))
    assert {"stages", "sampled tokens"} <= failing(session)
    engine.close()


def test_another_u_is_found(monkeypatch):
    honest = sampling.uniform
    monkeypatch.setattr(sampling, "uniform", lambda seed, step: (honest(seed, step) + 0.37) % 1)
    engine, session = run_of(SamplingParams())
    assert failing(session) == {"sampled tokens"}
    engine.close()


def test_a_sampler_that_takes_the_next_token_is_found(monkeypatch):
    honest = sampling.interval_at
    monkeypatch.setattr(sampling, "interval_at", lambda final, u: honest(final, (u + 0.5) % 1))
    engine, session = run_of(SamplingParams())
    assert failing(session) == {"sampled tokens"}
    engine.close()


def test_attention_that_is_scaled_wrongly_is_found(session, monkeypatch):
    honest, kept = attention.attention_weights, attention.rows_of_store
    monkeypatch.setattr(
        attention, "attention_weights", lambda q, k, m, scaling, *rest: honest(q, k, m, scaling * 1.01, *rest)
    )
    monkeypatch.setattr(
        attention,
        "rows_of_store",
        lambda asked, *where: kept([dataclasses.replace(one, scaling=one.scaling * 1.01) for one in asked], *where),
    )
    assert {"attention"} <= failing(session)


def test_a_row_of_attention_that_does_not_add_up_is_found(session, monkeypatch):
    honest = inspection.attention_at
    monkeypatch.setattr(inspection, "attention_at", lambda *args: honest(*args) * 1.00001)
    assert "rows of attention" in failing(session)


def test_a_replay_that_reads_the_wrong_position_is_found(session, monkeypatch):
    runner = session.engine.stepper.runner
    honest = runner.replay
    monkeypatch.setattr(
        runner, "replay", lambda store, ids, start, **rest: honest(store, ids, max(0, start - 1), **rest)
    )
    session._state.ring.clear()
    assert "logits" in failing(session)


@pytest.mark.parametrize(
    "ignored",
    [
        StopRules(max_new_tokens=9, stop_strings=("never there",), max_kv_bytes=10**6),
        StopRules(use_end_ids=False, stop_strings=("never there",), max_kv_bytes=10**6),
        StopRules(max_new_tokens=9, use_end_ids=False, max_kv_bytes=10**6),
        StopRules(max_new_tokens=9, use_end_ids=False, stop_strings=("never there",)),
    ],
    ids=["EOS tokens", "new tokens", "stop strings", "bytes"],
)
def test_a_stop_rule_that_the_engine_ignores_is_found(session, ignored):
    asked = StopRules(max_new_tokens=9, use_end_ids=False, stop_strings=("never there",), max_kv_bytes=10**6)
    session.configure(stop=asked).result()
    assert failing(session) == set()
    session.configure(stop=ignored).result()
    session._state.stop = asked  # as if it had been asked for, and not been kept to
    assert failing(session) == {"stop rules"}


@pytest.mark.parametrize("prompt", [20, 40])
def test_rotary_factors_that_depend_on_the_length_are_checked_as_one_forward_pass_uses_them(prompt):
    engine = LLMEngine(loaded(phi3()), EngineConfig(prefill_chunk=16))
    session = engine.create_session(sampling=EVERYTHING_ON, seed=6)
    session.prefill(tuple(range(40, 40 + prompt))).result()
    session.step().result()
    assert failing(session) == set()
    engine.close()


def test_an_oracle_with_other_code_in_it_is_found(session):
    head = session.engine.stock.lm_head
    head.forward = lambda hidden: torch.nn.functional.linear(hidden, head.weight)  # the same numbers, yet no oracle
    found = failing(session)
    del head.forward
    assert found == {"independent model"}


def test_progress_is_told_in_tokens_and_a_check_can_be_given_up(session, monkeypatch):
    seen = []
    run = study.Study.run

    def watched(self, report):
        def told(done, total):
            seen.append((done, total))
            if len(seen) > 1:
                session.cancel()
            report(done, total)

        self.chunk = 4
        return run(self, told)

    monkeypatch.setattr(study.Study, "run", watched)
    with pytest.raises(SessionError, match="The check was cancelled at 4 of 9 tokens"):
        check_numbers(session).result()
    assert seen == [(3, 9), (4, 9)]  # cut before the first step that is looked at
    assert session.progress is None


def test_a_very_long_session_is_refused_in_words(session, monkeypatch):
    monkeypatch.setattr(study, "MOST_TOKENS", 8)
    with pytest.raises(PromptTooLong, match=r"holds 9 tokens.*done for up to 8"):
        check_numbers(session).result()


def test_there_must_be_something_to_check(engine):
    with pytest.raises(NotPrefilled):
        check_numbers(engine.create_session()).result()


def test_what_a_session_holds_while_others_step_in_between_is_still_checked(engine, session):
    """Another session steps between the pieces, through the same model."""
    other = engine.create_session(seed=9)
    other.prefill((5, 6, 7)).result()
    checking = check_numbers(session)
    steps = [other.step() for _ in range(8)]
    assert all(check.passed for check in checking.result())
    assert [step.result().index for step in steps] == list(range(1, 9))
    assert failing(other) == set()


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
    assert {"attention", "keys and values"} <= failing(session)


def test_a_wrong_formula_for_the_cache_is_found(session):
    stepper = session.engine.stepper
    stepper.info = dataclasses.replace(stepper.info, kv_bytes_per_token=stepper.info.kv_bytes_per_token * 3)
    found = checked(session)["cache bytes"]
    assert not found.passed
    assert "formula 13,824 B, our tensors 4,608 B, transformers' cache 4,608 B" in found.compared


def test_a_model_that_computes_something_else_than_its_weights_say_is_found(engine):
    head = engine.model.lm_head
    head.forward = lambda hidden: -torch.nn.functional.linear(hidden, head.weight)  # the oracle keeps its own
    session = engine.create_session()
    session.prefill((40, 50, 60, 70)).result()
    found = failing(session)
    del head.forward
    assert "logits" in found


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
