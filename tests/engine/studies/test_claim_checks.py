"""Checks of claims: right on a model that behaves, and able to fail on one that does not."""

from __future__ import annotations

import pytest
import torch

from engine.errors import LoupeError, SessionError, UnsupportedModel
from engine.llm_engine import LLMEngine
from engine.studies.claim_checks import CHECKS, check
from engine.studies.claim_checks.forwards import NEW_TOKENS, TEXT
from engine.studies.claim_records import Finding
from tests.engine.architectures import tiny_engine, tiny_model

PROMPT = len(TEXT)  # the tiny tokenizer has one token per byte


@pytest.fixture
def engine():
    made = tiny_engine(context_limit=None)
    yield made
    made.close()


def found(engine: LLMEngine, name: str) -> Finding:
    return check(engine, name, lambda done, total: None).result(timeout=120)


def reading(finding: Finding, what: str) -> float:
    (value,) = [r.value for r in finding.readings if r.what == what]
    return value


@pytest.mark.parametrize("name", ["logit_rows", "stateless", "greedy", "tiles", "positions", "appended", "count_100"])
def test_what_is_true_of_every_such_model_holds_on_this_one(engine, name):
    assert found(engine, name).holds


def test_scores_come_in_a_row_per_position(engine):
    finding = found(engine, "logit_rows")
    assert (reading(finding, "rows"), reading(finding, "scores in a row")) == (PROMPT, 300)
    assert reading(finding, "all rows, float32") == PROMPT * 300 * 4


def test_a_hundred_tokens_from_one_are_5050_positions_without_a_cache_and_100_with(engine):
    finding = found(engine, "count_100")
    assert (reading(finding, "without a cache"), reading(finding, "with one")) == (5050, 100)


def test_a_cached_run_feeds_the_prompt_once_and_then_one_position_a_step(engine):
    assert reading(found(engine, "positions"), "positions fed") == PROMPT + NEW_TOKENS - 1


def test_another_first_token_moves_the_keys_of_every_layer_but_the_first(engine):
    finding = found(engine, "prefix")
    assert not finding.holds
    assert reading(finding, "layer 0 moved by") == 0
    assert reading(finding, "deeper, least moved") > 1e-3
    assert "in 1 of 2 layers" in finding.verdict


def test_cached_and_uncached_scores_agree_with_those_of_stock_transformers(engine):
    finding = found(engine, "cached_uncached")
    assert finding.holds
    assert reading(finding, "largest difference of a score") < 1e-5
    without = sum(PROMPT + step for step in range(NEW_TOKENS))
    assert reading(finding, "positions without") == without
    ids = engine.tokenizer.encode(TEXT).ids
    stock = tiny_model("llama").generate(
        torch.tensor([ids]), max_new_tokens=NEW_TOKENS, do_sample=False, eos_token_id=None, pad_token_id=0
    )
    drawn = engine.create_session().prefill(ids).result().candidates.ids[0]
    assert int(stock[0, len(ids)]) == int(drawn)


def test_two_requests_in_one_forward_get_their_own_scores(engine):
    finding = found(engine, "shared_step")
    assert finding.holds
    assert reading(finding, "largest difference of a score") < 1e-5


def test_streaming_puts_the_bytes_of_a_step_beside_what_memory_gives(engine):
    finding = found(engine, "streaming")
    step_s = reading(finding, "a step's forward, best") / 1e3
    assert reading(finding, "so it reads, at best") == pytest.approx(
        reading(finding, "read by a step, by formula") / step_s
    )
    matrices = 2 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 96 + 2 * 64) + 64 + 300 * 64  # two layers, last norm, head
    cache = 2 * 2 * 2 * 16 * (PROMPT + NEW_TOKENS + 1)  # key and value, layers, key heads, width; read and written
    assert reading(finding, "read by a step, by formula") == 4 * (matrices + cache)
    assert reading(finding, "memory's best, measured") >= reading(finding, "memory's median") > 0


# --- a check that cannot fail is no check -----------------------------------------------------------------------


def test_a_model_that_remembers_a_call_is_found_out(engine):
    calls = []
    engine.model.lm_head.register_forward_hook(lambda module, given, out: out + 0.01 * len(calls.append(1) or calls))
    assert not found(engine, "stateless").holds
    assert not found(engine, "logit_rows").holds
    assert found(engine, "greedy").readings[1].value > 0


def test_a_model_whose_keys_depend_on_what_comes_later_is_found_out(engine):
    layer = engine.model.model.layers[1]
    layer.register_forward_pre_hook(lambda module, given: (given[0] + 0.1 * given[0].shape[1], *given[1:]))
    assert not found(engine, "appended").holds
    assert reading(found(engine, "cached_uncached"), "largest difference of a score") > 1e-3


@pytest.mark.parametrize("name", ["gemma2", "gpt_oss", "mistral", "gpt2"])
def test_heads_of_other_architectures_are_walked_too(name):
    engine = tiny_engine(name)
    try:
        assert found(engine, "tiles").holds
    finally:
        engine.close()


def test_a_compressed_cache_has_no_keys_to_walk_over():
    engine = tiny_engine("deepseek_v3")
    try:
        with pytest.raises(UnsupportedModel, match="caches no keys"):
            found(engine, "tiles")
        assert not found(engine, "prefix").holds
    finally:
        engine.close()


def test_a_check_that_is_stopped_ends_and_leaves_the_engine_well(engine):
    def stop(done: int, total: int) -> None:
        raise SessionError("enough")

    with pytest.raises(SessionError, match="enough"):
        check(engine, "count_100", stop).result(timeout=60)
    assert found(engine, "positions").holds
    assert len(engine.sessions) == 0


@pytest.mark.parametrize("name", ["cached_uncached", "count_100", "greedy", "positions", "shared_step", "tiles"])
def test_progress_counts_to_its_end(engine, name):
    seen = []
    check(engine, name, lambda *now: seen.append(now)).result(timeout=60)
    assert seen == sorted(seen)
    assert seen[-1][0] == seen[-1][1]


def test_an_unknown_check_is_refused_by_name(engine):
    with pytest.raises(LoupeError, match="no check 'magic'"):
        check(engine, "magic", lambda done, total: None)
    assert "prefix" in CHECKS
