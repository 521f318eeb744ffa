"""Every formula against the model that transformers builds from the same config: parameters, operations, cache."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoConfig, AutoModelForCausalLM, DynamicCache, PreTrainedConfig, PreTrainedModel

from engine.costs.flops import decode_flops, flops_per_pair, prefill_flops, prompt_pairs
from engine.models.loaded_shape import shape_of
from engine.shapes import NAMED, from_config
from engine.shapes.dialects import DIALECTS
from tests.engine.architectures import ARCHITECTURES, GPT2_LIKE, LATENT, MIXED_LAYERS, REFUSED, SMALL, tiny_model

EXPERTS: dict[str, Any] = SMALL | {"num_local_experts": 4, "num_experts": 4, "num_experts_per_tok": 2}
NEO = {"vocab_size": 300, "hidden_size": 64, "num_layers": 2, "num_heads": 4, "max_position_embeddings": 128}
MOE = EXPERTS | {"moe_intermediate_size": 32, "head_dim": 24}
MORE: dict[str, tuple[str, dict[str, Any]]] = {
    "qwen2_moe": ("qwen2_moe", MOE | {"shared_expert_intermediate_size": 80}),
    "qwen3_moe": ("qwen3_moe", MOE),
    "qwen3_moe, every other layer": ("qwen3_moe", MOE | {"num_hidden_layers": 4, "decoder_sparse_step": 2}),
    "olmoe": ("olmoe", EXPERTS),
    "phimoe": ("phimoe", EXPERTS | {"attention_bias": True, "lm_head_bias": True}),
    "granitemoe": ("granitemoe", EXPERTS),
    "deepseek_v2": ("deepseek_v2", LATENT | {"first_k_dense_replace": 1, "n_shared_experts": 2}),
    "deepseek_v2, queries not compressed": ("deepseek_v2", LATENT | {"q_lora_rank": None, "first_k_dense_replace": 0}),
    "deepseek_v3, with experts": ("deepseek_v3", LATENT | {"first_k_dense_replace": 1, "n_shared_experts": 1}),
    "deepseek_v3, with biases": ("deepseek_v3", LATENT | {"attention_bias": True}),
    "llama, with biases": ("llama", SMALL | {"attention_bias": True, "mlp_bias": True}),
    "llama, tied": ("llama", SMALL | {"tie_word_embeddings": True}),
    "gemma2, untied": ("gemma2", MIXED_LAYERS | {"tie_word_embeddings": False}),
    "stablelm, with norms": ("stablelm", SMALL | {"qk_layernorm": True, "use_qkv_bias": True}),
    "stablelm, parallel": ("stablelm", SMALL | {"use_parallel_residual": True}),
    "cohere, with norms": ("cohere", SMALL | {"use_qk_norm": True}),
    "phi, with norms": ("phi", SMALL | {"qk_layernorm": True}),
    "falcon, grouped": ("falcon", REFUSED["falcon"] | {"new_decoder_architecture": True, "num_kv_heads": 2}),
    "falcon, many heads": ("falcon", REFUSED["falcon"] | {"multi_query": False, "bias": True}),
    "falcon, one after the other": ("falcon", REFUSED["falcon"] | {"parallel_attn": False}),
    "gpt_bigcode": ("gpt_bigcode", GPT2_LIKE),
    "gpt_neo": ("gpt_neo", {**NEO, "attention_types": [[["global", "local"], 1]]}),
    "olmo": ("olmo", SMALL),
    "olmo3": ("olmo3", SMALL | {"num_hidden_layers": 4, "sliding_window": 8}),
    "cohere2": ("cohere2", SMALL | {"head_dim": 16, "num_hidden_layers": 4, "sliding_window": 8}),
    "glm4": ("glm4", SMALL | {"head_dim": 16}),
    "nemotron": ("nemotron", SMALL | {"head_dim": 16}),
    "helium": ("helium", SMALL | {"head_dim": 16}),
    "arcee": ("arcee", SMALL | {"head_dim": 16}),
    "seed_oss": ("seed_oss", SMALL | {"head_dim": 16}),
}
ALL = {name: (name, settings) for name, settings in (ARCHITECTURES | REFUSED).items()} | MORE


def built(config: PreTrainedConfig, **how: Any) -> PreTrainedModel:
    """The model without its weights: every size is there, and no memory is taken."""
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(config, **how).eval()


def held(model: PreTrainedModel) -> int:
    """Parameters, and the router's biases, which DeepSeek-V3 keeps as buffers."""
    biases = [b for name, b in model.named_buffers() if name.endswith("e_score_correction_bias")]
    return sum(tensor.numel() for tensor in (*model.parameters(), *biases))


@pytest.mark.parametrize("name", NAMED)
def test_a_named_shape_has_the_parameters_of_the_model_transformers_builds(name):
    settings = dict(NAMED[name].config)
    config = AutoConfig.for_model(settings.pop("model_type"), **settings)
    assert NAMED[name].shape.parameters.total == held(built(config))
    assert from_config(config.to_dict()).parameters == NAMED[name].shape.parameters  # what a file on the Hub says


@pytest.mark.parametrize("name", ALL)
def test_an_architecture_has_the_parameters_of_the_model_transformers_builds(name):
    kind, settings = ALL[name]
    config = AutoConfig.for_model(kind, **settings)
    assert from_config(config.to_dict()).parameters.total == held(built(config))


@pytest.mark.parametrize("kind", sorted(DIALECTS))
def test_a_silent_config_is_tied_where_transformers_ties_it(kind):
    try:
        default = AutoConfig.for_model(kind).tie_word_embeddings
    except TypeError:
        pytest.skip("its config class has no defaults of its own")
    assert DIALECTS[kind].tied == default


PROMPT = 24


def counted(model: PreTrainedModel) -> tuple[int, int, DynamicCache]:
    """Operations of a prefill with one row of logits, of one decode step after it, and the cache."""
    cache = DynamicCache()
    ids = torch.zeros(1, PROMPT, dtype=torch.long, device="meta")
    with torch.no_grad(), FlopCounterMode(display=False) as prefill:
        model(input_ids=ids, cache=cache, use_cache=True, logits_to_keep=1)
    position = torch.full((1, 1), PROMPT, device="meta")
    with torch.no_grad(), FlopCounterMode(display=False) as decode:
        model(input_ids=ids[:, :1], position_ids=position, cache=cache, use_cache=True)
    return prefill.get_total_flops(), decode.get_total_flops(), cache


@pytest.mark.parametrize("name", ["Llama 3.1 8B", "Llama 2 13B", "Qwen3 0.6B", "GPT-2", "SmolLM2-135M", "Qwen2.5 0.5B"])
def test_operations_are_those_a_counter_sees(name):
    settings = dict(NAMED[name].config)
    config = AutoConfig.for_model(settings.pop("model_type"), **settings)
    shape = NAMED[name].shape
    prefill, decode, cache = counted(built(config, attn_implementation="eager"))
    beside = 2 * (shape.parameters.matmul - shape.parameters.matrices)  # norms and biases, which it does not count
    squares = prefill_flops(shape, PROMPT, causal=False, last_logits_only=True)
    assert prefill == squares - beside * PROMPT
    assert decode == decode_flops(shape, PROMPT + 1) - beside
    cached = sum(t.numel() for layer in cache.layers for t in (layer.keys, layer.values))
    assert cached == (PROMPT + 1) * shape.kv_elements_per_token


def test_operations_of_latent_attention_are_those_a_counter_sees():
    model = built(AutoConfig.for_model("deepseek_v3", **LATENT), attn_implementation="eager")
    shape = shape_of(model.config)
    prefill, _, _ = counted(model)
    linear = 2 * (shape.parameters.matrices - shape.parameters.head) * PROMPT + 2 * shape.parameters.head
    pairs = flops_per_pair(shape, absorbed=False) * prompt_pairs(shape, PROMPT, causal=False)
    assert prefill == linear + pairs


def test_a_windowed_layer_reads_its_window_once_the_new_token_is_in():
    """transformers keeps one key fewer than the window: the next token's makes it full."""
    model = tiny_model("mistral")
    shape = shape_of(model.config)
    cache = DynamicCache(config=model.config)
    with torch.inference_mode():
        model(input_ids=torch.zeros(1, 15, dtype=torch.long), cache=cache, use_cache=True)
    kept = sum(t.numel() for layer in cache.layers for t in (layer.keys, layer.values))
    assert kept + shape.kv_elements_per_token == shape.kv_bytes(16, 1) == shape.kv_bytes(8, 1)
