"""A model is loaded whole, ready to run, with the right numbers."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch
from transformers import (
    GenerationConfig,
    GPT2Config,
    GPT2LMHeadModel,
)

from engine.config import EngineConfig
from engine.models import loader
from engine.models.loader import LoadedModel, load_model
from tests.engine.tiny_models import byte_level_tokenizer, tiny_folder


def on_cpu(folder: Path | str, **changes: object) -> EngineConfig:
    return EngineConfig(model=str(folder), device="cpu", **changes)  # type: ignore[arg-type]


def edit_json(path: Path, **changes: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


# Numbers


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    return load_model(on_cpu(tiny_folder(tmp_path_factory.mktemp("tiny"))))


def test_a_tied_embedding_counts_once(tiny: LoadedModel) -> None:
    attention = 32 * 64 + 2 * 32 * 32 + 64 * 32  # q; k and v; output
    by_hand = 300 * 32 + 2 * (attention + 3 * 32 * 48 + 2 * 32) + 32
    assert tiny.info.parameters == by_hand
    assert tiny.info.weight_bytes == 4 * by_hand


def test_head_dim_is_the_configs_and_not_hidden_size_over_heads(tiny: LoadedModel) -> None:
    assert tiny.info.head_dim == 16  # 32 / 4 would be 8
    assert tiny.info.kv_bytes_per_token == 2 * 2 * 2 * 16 * 4  # k and v, layers, key-value heads, width, bytes


def test_the_model_is_ready_for_inference(tiny: LoadedModel) -> None:
    assert not tiny.model.training
    assert not any(parameter.requires_grad for parameter in tiny.model.parameters())
    assert tiny.info.dtype == "float32"


def test_weights_lie_in_memory_of_their_own_and_aligned(tiny: LoadedModel) -> None:
    """Left in the mapped file they are misaligned, and cutting the file would end the process."""
    assert {parameter.data_ptr() % 64 for parameter in tiny.model.parameters()} == {0}
    os.truncate(Path(tiny.info.folder) / "model.safetensors", 0)
    assert torch.isfinite(tiny.model.model.embed_tokens.weight.sum())
    assert tiny.model.lm_head.weight.data_ptr() == tiny.model.model.embed_tokens.weight.data_ptr()


def test_loaded_weights_give_the_saved_models_logits(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    folder = tiny_folder(tmp_path)
    stock = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager")
    ids = torch.tensor([[1, 5, 9]])
    with torch.inference_mode():
        assert torch.equal(load_model(on_cpu(folder)).model(ids).logits, stock(ids).logits)


def test_end_ids_are_the_union_of_tokenizer_and_generation_config(tmp_path: Path) -> None:
    folder = tiny_folder(tmp_path)  # tokenizer end: 2
    GenerationConfig(eos_token_id=[0, 106]).save_pretrained(folder)
    assert load_model(on_cpu(folder)).info.end_ids == (0, 2, 106)
    GenerationConfig(eos_token_id=106).save_pretrained(folder)
    assert load_model(on_cpu(folder)).info.end_ids == (2, 106)


def test_the_authors_sampling_settings_are_shown_and_frozen(tmp_path: Path) -> None:
    folder = tiny_folder(tmp_path)
    GenerationConfig(do_sample=True, temperature=0.6, top_p=0.9, eos_token_id=2).save_pretrained(folder)
    defaults = load_model(on_cpu(folder)).info.defaults
    assert dict(defaults) == {"do_sample": True, "temperature": 0.6, "top_p": 0.9}
    with pytest.raises(TypeError):
        defaults["temperature"] = 1.0  # type: ignore[index]


def test_a_model_without_settings_of_its_own_has_no_defaults(tiny: LoadedModel) -> None:
    assert dict(tiny.info.defaults) == {}


def test_gpt2_names_its_limit_otherwise_and_it_is_found(tmp_path: Path) -> None:
    config = GPT2Config(vocab_size=300, n_positions=48, n_embd=16, n_layer=1, n_head=2, bos_token_id=1, eos_token_id=2)
    GPT2LMHeadModel(config).save_pretrained(tmp_path)
    byte_level_tokenizer().save_pretrained(tmp_path)
    info = load_model(on_cpu(tmp_path)).info
    assert (info.context_limit, info.num_kv_heads, info.head_dim) == (48, 2, 8)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_16_bit_type_runs_on_cpu_and_halves_the_weights_and_the_cache(tmp_path: Path, dtype: str) -> None:
    folder = tiny_folder(tmp_path)
    loaded = load_model(on_cpu(folder, dtype=dtype))
    full, half = load_model(on_cpu(folder)).info, loaded.info
    assert half.dtype == dtype
    assert torch.isfinite(loaded.model(torch.tensor([[1, 5]])).logits).all()
    assert (2 * half.weight_bytes, 2 * half.kv_bytes_per_token) == (full.weight_bytes, full.kv_bytes_per_token)


def test_threads_are_set_as_asked_and_never_beyond_the_cores_by_default() -> None:
    before = torch.get_num_threads()
    try:
        loader.use_threads(1)
        assert torch.get_num_threads() == 1
        loader.use_threads(0)
        assert 1 <= torch.get_num_threads() <= len(os.sched_getaffinity(0))
    finally:
        torch.set_num_threads(before)


@pytest.mark.slow
def test_the_bundled_model_in_numbers(bundled: LoadedModel) -> None:
    info = bundled.info
    assert info.parameters == 134_515_008
    assert info.weight_bytes == 4 * 134_515_008
    assert (info.num_layers, info.num_heads, info.num_kv_heads, info.head_dim) == (30, 9, 3, 64)
    assert (info.vocab_size, info.context_limit, info.end_ids) == (49_152, 8_192, (2,))
    assert info.kv_bytes_per_token == 46_080
    assert 8_192 * info.kv_bytes_per_token == 360 * 2**20
    assert (info.id, info.name, info.licence) == ("smollm2-135m-instruct", "SmolLM2-135M-Instruct", "Apache-2.0")
