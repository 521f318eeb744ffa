"""The bundled model through this engine and through stock transformers: the same tokens and the same rows."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, DynamicCache, GenerationConfig, PreTrainedModel

from engine.config import EngineConfig, SamplingParams, StopRules
from engine.decode.sampling import sample
from engine.forward.model_runner import Feed
from engine.llm_engine import LLMEngine
from engine.models.loader import LoadedModel
from engine.text.tokenizer import ChatMessage
from engine.tokens import EncodedPrompt

pytestmark = pytest.mark.slow

TOKENS = 16
PROMPTS = {
    "cat": "The cat sat",
    "one letter": "I",
    "python": "def fibonacci(n):\n    if n < 2:\n        return n\n    return",
    "chinese": "今天天气很好，我们去公园",
    "emoji": "I love pizza 🍕🍕 and the fox 🦊",
    "arabic": "مرحبا بكم في",
    "long": "The library was quiet. Rain fell on the windows, and somebody turned a page. " * 24,
}
CHATS = {"chat": "Why is the sky blue?"}


@pytest.fixture(scope="module")
def engine(bundled: LoadedModel):
    """An engine of its own over a structural copy, so that the shared model stays as the loader made it."""
    tensors = [*bundled.model.parameters(), *bundled.model.buffers()]
    model = copy.deepcopy(bundled.model, memo={id(t): t for t in tensors})
    made = LLMEngine(LoadedModel(bundled.info, model, bundled.tokenizer), EngineConfig(device="cpu"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def stock(bundled: LoadedModel) -> PreTrainedModel:
    """The same folder, read by transformers alone."""
    model = AutoModelForCausalLM.from_pretrained(bundled.info.folder, dtype=torch.float32, attn_implementation="eager")
    model.generation_config = GenerationConfig()  # `generate` merges the folder's own settings, end ids too
    return model


def encoded(engine: LLMEngine, name: str) -> EncodedPrompt:
    if name in CHATS:
        return engine.tokenizer.encode_chat([ChatMessage("user", CHATS[name])])
    return engine.tokenizer.encode(PROMPTS[name])


def generated(stock: PreTrainedModel, ids: tuple[int, ...], **settings) -> list[int]:
    plain = GenerationConfig(eos_token_id=None, pad_token_id=0, **settings)
    prompt = torch.tensor([ids])
    with torch.inference_mode():
        out = stock.generate(prompt, attention_mask=torch.ones_like(prompt), generation_config=plain)
    return out[0, len(ids) :].tolist()


@pytest.mark.parametrize("name", [*PROMPTS, *CHATS])
def test_greedy_ids_equal_generate_for_16_tokens(engine, stock, name):
    rules = StopRules(use_end_ids=False, max_new_tokens=TOKENS)
    session = engine.create_session(sampling=SamplingParams(temperature=0), stop=rules)
    prompt = encoded(engine, name)
    session.prefill(prompt).result()
    for step in [session.step() for _ in range(TOKENS - 1)]:
        step.result()
    ours = [c.token_id for c in session.recipe.chosen]
    assert ours == generated(stock, prompt.ids, do_sample=False, max_new_tokens=TOKENS)


@pytest.mark.parametrize("name", ["cat", "python", "chat"])
def test_sampled_ids_equal_generate_with_every_processor_on(engine, stock, name):
    params = SamplingParams(temperature=0.8, top_k=50, top_p=0.9, min_p=0.02, repetition_penalty=1.1)
    prompt = encoded(engine, name).ids
    torch.manual_seed(13)
    theirs = generated(
        stock,
        prompt,
        do_sample=True,
        max_new_tokens=12,
        temperature=0.8,
        top_k=50,
        top_p=0.9,
        min_p=0.02,
        repetition_penalty=1.1,
    )
    generator = torch.Generator().manual_seed(13)

    def work():
        store, feed, drawn = engine.stepper.runner.new_store(), prompt, []
        for step in range(12):
            row = engine.stepper.runner.forward([Feed(store, feed)]).rows[0].logits[-1]
            draw = sample(row, (*prompt, *drawn), params, seed=0, step=step, generator=generator).draw
            drawn.append(draw.token_id)
            feed = (draw.token_id,)
        yield from ()
        return drawn

    assert engine.submit("parity", work).result() == theirs


@pytest.mark.parametrize("name", ["cat", "emoji", "chat"])
def test_attention_of_every_layer_head_and_step_equals_eager(engine, stock, name):
    session = engine.create_session(sampling=SamplingParams(), seed=2)
    session.prefill(encoded(engine, name)).result()
    for _ in range(8):
        session.step().result()
    ids, cache = session.recipe.token_ids, DynamicCache()
    with torch.inference_mode():
        for record in session.records:
            fed = torch.tensor([record.input_ids])
            out = stock(input_ids=fed, cache=cache, use_cache=True, output_attentions=True)
            theirs = torch.stack([w[0, :, -1] for w in out.attentions]).numpy()
            np.testing.assert_allclose(session.attention(record.index).result(), theirs, atol=1e-5)
    assert len(ids) == session.records[-1].kv_len + 1


def test_four_ragged_sessions_draw_what_each_draws_alone(engine):
    names = ("cat", "long", "chinese", "chat")
    rules = StopRules(use_end_ids=False)
    alone, together = (
        [engine.create_session(sampling=SamplingParams(temperature=0.7, top_k=50), seed=9, stop=rules) for _ in names]
        for _ in range(2)
    )
    for name, one, other in zip(names, alone, together, strict=True):
        one.prefill(encoded(engine, name)).result()
        other.prefill(encoded(engine, name)).result()
    for session in alone:
        for _ in range(8):
            session.step().result()
    batches = [[session.step() for session in together] for _ in range(8)]
    assert max(f.result().batch_size for row in batches for f in row) == 4
    for one, other in zip(alone, together, strict=True):
        assert other.recipe.token_ids == one.recipe.token_ids
        np.testing.assert_allclose(other.records[-1].candidates.logits, one.records[-1].candidates.logits, atol=2e-4)


def test_41_tokens_take_41_times_46080_bytes_by_tensors_and_by_formula(engine):
    session = engine.create_session(sampling=SamplingParams(temperature=0))
    session.prefill(tuple(range(1000, 1040))).result()
    record = session.step().result()
    assert record.kv_len == 41
    assert record.kv_bytes == record.memory.kv_live_bytes == record.memory.kv_formula_bytes == 41 * 46_080
    assert record.memory.weight_bytes == 134_515_008 * 4
