"""Rotary embeddings that depend on the length go by each session's prompt, never by the forward pass it shares."""

from __future__ import annotations

import pytest
import torch
from transformers import (
    GenerationConfig,
    LlamaConfig,
    LlamaForCausalLM,
    Phi3Config,
    Phi3ForCausalLM,
    PhimoeConfig,
    PhimoeForCausalLM,
    PreTrainedModel,
)

from engine.config import EngineConfig, SamplingParams, StopRules
from engine.decode.prefilling import feed
from engine.errors import PromptTooLong
from engine.forward.kv_store import KVStore
from engine.forward.model_runner import Feed, ModelRunner
from engine.forward.rotary import rope_switch
from engine.llm_engine import LLMEngine
from engine.tokens import EncodedPrompt
from tests.engine.architectures import SMALL, loaded

SWITCH = 32
FACTORS = {"short_factor": [1.0] * 8, "long_factor": [8.0] * 8, "original_max_position_embeddings": SWITCH}
SIZES = SMALL | {"max_position_embeddings": 256, "original_max_position_embeddings": SWITCH, "initializer_range": 0.2}
LONGROPE = {"rope_type": "longrope", "rope_theta": 10_000.0, "partial_rotary_factor": 1.0} | FACTORS
IDS = tuple(int(i) for i in torch.randint(3, 300, (100,), generator=torch.Generator().manual_seed(2)))


def phi3(long_factor: float = 8.0) -> PreTrainedModel:
    """Random, with weights large enough that the factors matter."""
    torch.manual_seed(1)
    config = Phi3Config(**SIZES, rope_parameters=LONGROPE | {"long_factor": [long_factor] * 8})
    model = Phi3ForCausalLM._from_config(config, attn_implementation="eager")
    return model.eval().requires_grad_(False)


def phimoe() -> PreTrainedModel:
    """Its attention is scaled by another number beyond the switch, too."""
    torch.manual_seed(1)
    rope = LONGROPE | {"short_mscale": 1.0, "long_mscale": 1.3}
    config = PhimoeConfig(**SIZES, num_local_experts=2, rope_parameters=rope)
    return PhimoeForCausalLM._from_config(config, attn_implementation="eager").eval().requires_grad_(False)


def generated(model: PreTrainedModel, prompt: tuple[int, ...], count: int) -> list[int]:
    """Greedy ids of transformers' own loop."""
    plain = GenerationConfig(do_sample=False, max_new_tokens=count, eos_token_id=None, pad_token_id=0)
    ids = torch.tensor([prompt])
    return model.generate(ids, attention_mask=torch.ones_like(ids), generation_config=plain)[0, len(prompt) :].tolist()


def chunked(runner: ModelRunner, ids: tuple[int, ...], chunk: int) -> tuple[KVStore, torch.Tensor]:
    """A store that holds `ids`, fed in chunks, and the last row's logits."""
    pieces = feed(runner, runner.new_store(), ids, chunk, lambda *_: None)
    while True:
        try:
            next(pieces)
        except StopIteration as done:
            return done.value.store, done.value.row.logits


@pytest.fixture
def engine():
    made = LLMEngine(loaded(phi3(), context_limit=256), EngineConfig(fast_kernels=False, prefill_chunk=16))
    yield made
    made.close()


def greedy(engine: LLMEngine, prompt: tuple[int, ...], count: int):
    """The records of a greedy session."""
    session = engine.create_session(sampling=SamplingParams(0.0), stop=StopRules(False, count))
    records = [session.prefill(EncodedPrompt(prompt, ("prompt",) * len(prompt), ())).result()]
    while records[-1].finish_reason is None:
        records.append(session.step().result())
    return records


def test_the_factors_matter_in_these_models():
    """Else nothing here could fail: 33 tokens with the long factors and without."""
    ids = torch.tensor([IDS[:33]])
    assert (phi3()(ids).logits[0, -1] - phi3(long_factor=1.0)(ids).logits[0, -1]).abs().max() > 0.5
    assert rope_switch(phi3()) == SWITCH


@pytest.mark.parametrize("make", [phi3, phimoe])
@pytest.mark.parametrize("count", [10, 48])
def test_chunks_of_16_give_what_one_uncached_forward_gives(make, count):
    expected = make()(torch.tensor([IDS[:count]])).logits[0, -1]
    with torch.inference_mode():
        runner = ModelRunner(make())
        for chunk in (16, 256):
            torch.testing.assert_close(chunked(runner, IDS[:count], chunk)[1], expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize("make", [phi3, phimoe])
def test_a_neighbour_beyond_the_switch_changes_no_logit_and_no_cached_key(make):
    short, long = IDS[:10], IDS[20:60]
    expected = [make()(torch.tensor([(*ids, 7)])).logits[0, -1] for ids in (short, long)]
    with torch.inference_mode():
        runner = ModelRunner(make())
        stores = [chunked(runner, ids, 256)[0] for ids in (short, long)]
        alone, _ = chunked(runner, (*short, 7), 256)
        rows = runner.forward([Feed(store, (7,)) for store in stores]).rows
    for row, logits in zip(rows, expected, strict=True):
        torch.testing.assert_close(row.logits[-1], logits, atol=1e-4, rtol=0)
    for layer in range(runner.num_layers):
        torch.testing.assert_close(stores[0].view(layer, 11), alone.view(layer, 11), atol=1e-5, rtol=0)


def test_greedy_ids_on_either_side_of_the_switch_are_those_of_generate(engine):
    for prompt in (IDS[:20], IDS[:48]):
        records = greedy(engine, prompt, 40)
        ids = [record.emitted_ids[0] for record in records]
        assert ids == generated(phi3(), prompt, 40)[: len(ids)]
        assert len(ids) == (12 if len(prompt) == 20 else 40)


def test_a_session_that_begins_below_the_switch_ends_there_and_says_why(engine):
    last = greedy(engine, IDS[:20], 40)[-1]
    assert last.finish_reason == "context_limit"
    assert [check.label for check in last.stops if check.fired] == ["context limit 32"]
    with pytest.raises(PromptTooLong, match="32 tokens, where Tiny changes its rotary embeddings"):
        greedy(engine, IDS[:32], 1)


def test_prompts_on_two_sides_of_the_switch_share_no_cached_chunk(engine):
    """The first 16 tokens are equal, their keys are not."""
    greedy(engine, IDS[:20], 1)
    (record,) = greedy(engine, IDS[:48], 1)
    assert record.reused_tokens == 0
    (record,) = greedy(engine, IDS[:50], 1)
    assert record.reused_tokens == 48
    expected = generated(phi3(), IDS[:50], 1)
    assert list(record.emitted_ids) == expected


def test_dynamic_scaling_begins_beyond_the_context_limit_where_no_session_gets():
    """transformers stretches the frequencies from `max_position_embeddings` on, which is the model's limit here."""
    rope = {"rope_type": "dynamic", "rope_theta": 10_000.0, "factor": 4.0}
    torch.manual_seed(1)
    config = LlamaConfig(**SMALL | {"max_position_embeddings": SWITCH, "initializer_range": 0.2}, rope_parameters=rope)
    model = LlamaForCausalLM(config).eval().requires_grad_(False)
    expected = generated(model, IDS[:20], 12)
    engine = LLMEngine(loaded(model, context_limit=SWITCH), EngineConfig(fast_kernels=False))
    try:
        records = greedy(engine, IDS[:20], 40)
        assert [record.emitted_ids[0] for record in records] == expected
        assert records[-1].finish_reason == "context_limit"
        with pytest.raises(PromptTooLong):
            greedy(engine, IDS[:40], 1)
    finally:
        engine.close()
