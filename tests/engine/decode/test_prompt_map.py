"""One head's map over a whole prompt: what eager attention computes, a few rows of that head at a time, and bounded."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.config import EngineConfig
from engine.decode import inspection
from engine.errors import PromptTooLong, SessionError, UnknownHead
from engine.forward import attention
from engine.llm_engine import LLMEngine
from tests.engine.architectures import loaded, tiny_model

PROMPT = tuple(3 + (7 * i) % 250 for i in range(100))  # two pieces of rows


def opened(name: str):
    engine = LLMEngine(loaded(tiny_model(name)), EngineConfig(fast_kernels=False, prefill_chunk=32))
    session = engine.create_session()
    session.prefill(PROMPT).result()
    return engine, session


@pytest.mark.parametrize(
    "name", ["llama", "qwen3", "mistral", "gemma2", "gpt_oss", "gpt2", "llama4_text", "deepseek_v3"]
)
def test_the_map_of_every_head_is_that_of_eager_attention(name):
    engine, session = opened(name)
    stock = tiny_model(name)
    eager = stock(input_ids=torch.tensor([PROMPT]), output_attentions=True).attentions
    for layer, weights in enumerate(eager):
        for head in range(weights.shape[1]):
            ours = session.prompt_attention(layer, head).result()
            assert ours.shape == (100, 100)
            np.testing.assert_allclose(ours, weights[0, head], atol=2e-6)
    engine.close()


def test_no_more_than_some_rows_of_one_head_are_computed_at_a_time(monkeypatch):
    engine, session = opened("llama")
    compute, shapes = attention.attention_weights, []

    def seen(*args):
        made = compute(*args)
        shapes.append(tuple(made.shape))
        return made

    monkeypatch.setattr(attention, "attention_weights", seen)
    session.prompt_attention(1, 3).result()
    assert shapes == [(1, 1, 64, 64), (1, 1, 36, 100)]
    engine.close()


def test_others_step_between_the_pieces_and_it_can_be_given_up(monkeypatch):
    engine, session = opened("llama")
    runner, told = engine.stepper.runner, []
    pieces = inspection.prompt_attention(runner, session._state, 0, 0, lambda done, total: told.append((done, total)))
    assert len(list(pieces)) == 2
    assert told == [(64, 100), (100, 100)]
    replay = runner.replay
    monkeypatch.setattr(runner, "replay", lambda *args, **how: session.cancel() or replay(*args, **how))
    with pytest.raises(SessionError, match="attention map was cancelled at 64 of 100"):
        session.prompt_attention(0, 0).result()
    engine.close()


def test_a_prompt_too_long_for_a_map_is_refused_in_words(monkeypatch):
    engine, session = opened("llama")
    monkeypatch.setattr(inspection, "LONGEST_MAP", 99)
    with pytest.raises(PromptTooLong, match="100 tokens; a map of every token over every token is made for up to 99"):
        session.prompt_attention(0, 0).result()
    with pytest.raises(UnknownHead, match="no head 4"):
        session.prompt_attention(0, 4).result()
    assert session.step().result().index == 1
    engine.close()
