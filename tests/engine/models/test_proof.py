"""A model is proven when the engine starts: a wrong mask, position, row or kernel is refused or put right, in words."""

from __future__ import annotations

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from engine.config import EngineConfig, SamplingParams, StopRules
from engine.errors import ModelTooLarge, UnsupportedModel
from engine.forward import attention
from engine.forward.model_runner import ModelRunner
from engine.kernels import fast_modules
from engine.llm_engine import LLMEngine
from engine.models import proof, trusted
from engine.models.proof import ask_stock, prove
from engine.models.stock import follow_weights, share_weights
from engine.tokens import EncodedPrompt
from tests.engine.architectures import SMALL, loaded, tiny_model


@pytest.fixture(autouse=True)
def _no_grad():
    with torch.inference_mode():
        yield


def strong(name: str, **changes: object) -> PreTrainedModel:
    """A tiny model whose weights are large enough that every part of it matters."""
    return tiny_model(name, initializer_range=0.2, **changes)


def proven(model: PreTrainedModel) -> bool:
    """What the engine does with a model before anything else."""
    stock = share_weights(model)
    expected = ask_stock(stock)
    follow_weights(stock, model)
    return prove(ModelRunner(model), stock, expected)


@pytest.mark.parametrize("name", ["llama", "gemma2", "gpt_oss", "deepseek_v3", "mixtral", "opt"])
def test_healthy_models_are_proven_and_may_share_a_forward(name):
    assert proven(strong(name) if name != "opt" else tiny_model(name))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", ["llama", "mixtral", "gpt_oss"])
def test_healthy_models_are_proven_in_16_bit_too(name, dtype):
    assert proven(strong(name).to(dtype))


def test_a_mask_that_a_chunk_does_not_get_is_refused(monkeypatch):
    """As where an architecture builds its own from the one it is not given."""
    monkeypatch.setattr(attention, "build_mask", lambda *_, **__: None)
    fused = attention._fused

    def sees_everything(query, key, value, mask, *rest):
        everything = torch.ones(1, 1, query.shape[2], key.shape[2], dtype=torch.bool)
        return fused(query, key, value, everything, *rest)

    monkeypatch.setattr(attention, "_fused", sees_everything)
    with pytest.raises(
        UnsupportedModel, match=r"LlamaForCausalLM computes something else .* a prompt's logits by up to"
    ):
        proven(strong("llama"))


def test_rows_of_attention_that_are_not_the_models_are_refused_by_layer(monkeypatch):
    monkeypatch.setattr(proof, "row_weights", lambda asked, keys: attention.row_weights(asked, keys).roll(1, -1))
    with pytest.raises(UnsupportedModel, match="in the attention of layer 0 by up to"):
        proven(strong("llama"))


def test_what_is_wrong_in_a_batch_alone_keeps_sessions_apart(monkeypatch):
    stock = ModelRunner._call

    def longest_wins(self, forward_pass, token_ids, logit_rows):
        forward_pass.past = [max(forward_pass.past)] * len(forward_pass.past)
        return stock(self, forward_pass, token_ids, logit_rows)

    monkeypatch.setattr(ModelRunner, "_can_share", lambda *_: False)
    monkeypatch.setattr(ModelRunner, "_call", longest_wins)
    assert proven(strong("gemma2")) is False


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_step_that_forgets_its_position_is_refused_in_any_dtype(dtype, monkeypatch):
    call = ModelRunner._call

    def at_the_start(self, forward_pass, token_ids, logit_rows):
        forward_pass.past = [0 for _ in forward_pass.past]
        return call(self, forward_pass, token_ids, logit_rows)

    runner_made = strong("llama").to(dtype)
    stock = share_weights(runner_made)
    expected = ask_stock(stock)
    runner = ModelRunner(runner_made)
    monkeypatch.setattr(ModelRunner, "_call", at_the_start)
    with pytest.raises(UnsupportedModel, match="later chunk"):
        prove(runner, stock, expected)


def test_kernels_that_compute_something_else_are_taken_back_and_the_model_runs_on_its_own(monkeypatch):
    gated = fast_modules.FastMLP.forward
    monkeypatch.setattr(fast_modules.FastMLP, "forward", lambda self, x: 1.01 * gated(self, x))
    monkeypatch.setattr(fast_modules.FastLayer, "row", None, raising=False)
    monkeypatch.setattr("engine.kernels.install._RowBuilder.build", lambda *_: False)
    with torch.inference_mode(False):
        model = strong("llama")
    engine = LLMEngine(loaded(model), EngineConfig())
    try:
        assert engine.kernels is not None
        assert not engine.kernels.applied
        assert "a prompt's logits" in engine.kernels.reason
    finally:
        engine.close()


def test_an_architecture_that_fails_inside_its_own_program_is_refused_in_words():
    config = AutoConfig.for_model("doge", **SMALL, initializer_range=0.2)
    torch.manual_seed(1)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval().requires_grad_(False)
    with pytest.raises(UnsupportedModel, match="Tiny"):
        LLMEngine(loaded(model), EngineConfig(fast_kernels=False))


def test_weights_that_give_no_numbers_are_refused():
    model = tiny_model("llama")
    model.model.norm.weight.data.fill_(float("nan"))
    with pytest.raises(UnsupportedModel, match="are no numbers in float32"):
        LLMEngine(loaded(model), EngineConfig(fast_kernels=False))


def test_too_little_memory_at_the_start_is_said(monkeypatch):
    def full(*_: object) -> None:
        raise torch.OutOfMemoryError

    monkeypatch.setattr(trusted, "ask_stock", full)
    with pytest.raises(ModelTooLarge, match="not enough memory for Tiny"):
        LLMEngine(loaded(tiny_model("llama")), EngineConfig(fast_kernels=False))


def test_attention_that_asks_the_cache_for_a_length_gives_every_session_its_own_forward():
    """Llama 4 heats its queries up by the position, which it takes from the cache's length; here every 4 tokens."""
    changes = {"floor_scale": 4, "attn_scale": 2.0, "no_rope_layers": [0, 0, 0, 0]}
    ids = tuple(range(3, 60))
    engine = LLMEngine(loaded(strong("llama4_text", **changes)), EngineConfig(fast_kernels=False))
    stock = strong("llama4_text", **changes)
    try:
        assert engine.info.notes[-1].startswith("Sessions of this model get a forward pass each")
        sessions = [engine.create_session(sampling=SamplingParams(0.0), stop=StopRules(False, 6)) for _ in range(3)]
        for session, length in zip(sessions, (3, 20, 50), strict=True):
            session.prefill(EncodedPrompt(ids[:length], ("prompt",) * length, ())).result()
        for _ in range(5):
            for step in [session.step() for session in sessions]:
                assert step.result().batch_size == 1
        for session, length in zip(sessions, (3, 20, 50), strict=True):
            fed = torch.tensor([session.recipe.token_ids[:-1]])
            expected = stock(fed).logits[0, length - 1 :].argmax(-1).tolist()
            assert [chosen.token_id for chosen in session.recipe.chosen] == expected
    finally:
        engine.close()


def test_attention_that_asks_for_a_length_is_noticed_although_eight_tokens_cannot_show_it():
    """Llama 4's own scale is 8,192 tokens. Models whose masks alone ask go on sharing."""
    assert not ModelRunner(tiny_model("llama4_text")).may_share
    assert not proven(tiny_model("llama4_text"))
    assert all(ModelRunner(tiny_model(name)).may_share for name in ("llama", "gemma2", "deepseek_v3", "gpt2"))
