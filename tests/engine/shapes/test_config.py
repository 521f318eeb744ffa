"""Configs as people paste them: other names, parts left out, nonsense; each error names the field and the fix."""

from __future__ import annotations

import json

import pytest

from engine.costs import Window
from engine.errors import InvalidConfig, ModelNotFound, ModelUnreachable
from engine.models.hub_shape import shape_on_hub
from engine.shapes import NAMED, from_config, from_json

LLAMA = dict(NAMED["Llama 3.1 8B"].config)


def without(*names: str, **changes: object) -> dict[str, object]:
    return {key: value for key, value in (LLAMA | changes).items() if key not in names}


def test_pasted_text_is_read():
    assert from_json(json.dumps(LLAMA)) == NAMED["Llama 3.1 8B"].shape


def test_query_heads_are_key_heads_where_none_are_given():
    assert from_config(without("num_key_value_heads")).num_kv_heads == 32


def test_head_width_comes_from_the_config_where_it_is_given():
    assert from_config(without(head_dim=64)).head_dim == 64
    assert from_config(LLAMA).head_dim == 4096 // 32


def test_the_text_part_of_a_model_that_sees_is_read_and_what_it_leaves_out_is_said():
    inner = {
        "hidden_size": 2560,
        "intermediate_size": 10_240,
        "model_type": "gemma3_text",
        "num_hidden_layers": 34,
        "sliding_window": 1024,
    }
    shape = from_config({"model_type": "gemma3", "text_config": inner, "vision_config": {"hidden_size": 1152}})
    assert (shape.num_heads, shape.num_kv_heads, shape.head_dim, shape.tied) == (8, 4, 256, True)
    assert shape.window == Window(size=1024, layers=34 - 34 // 6)
    assert any("num_attention_heads is not in the config: 8" in said for said in shape.assumed)


def test_an_unknown_type_is_read_like_a_llama_and_says_so():
    shape = from_config(LLAMA | {"model_type": "brandnew"})
    assert shape.parameters == NAMED["Llama 3.1 8B"].shape.parameters
    assert "model_type 'brandnew' is not known here" in shape.doubts[0]
    assert not NAMED["Llama 3.1 8B"].shape.doubts


def test_older_configs_count_their_windows_by_pattern():
    gemma2 = dict(NAMED["Gemma 2 2B"].config)
    assert from_config(gemma2).window == Window(size=4096, layers=13)
    listed = gemma2 | {"layer_types": ["sliding_attention"] + ["full_attention"] * 25}
    assert from_config(listed).window == Window(size=4096, layers=1)
    qwen = dict(NAMED["Qwen2.5 0.5B"].config) | {"sliding_window": 1024}
    assert from_config(qwen).window is None  # switched off
    assert from_config(qwen | {"use_sliding_window": True, "max_window_layers": 20}).window == Window(
        size=1024, layers=4
    )


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (without("num_hidden_layers"), "no num_hidden_layers (n_layer, n_layers, num_layers would do as well). Add it"),
        (without("vocab_size"), "no vocab_size. Add it"),
        (without("num_attention_heads"), "no num_attention_heads"),
        (without("intermediate_size"), "no intermediate_size"),
        (without(hidden_size="wide"), "hidden_size must be a whole number, got 'wide'"),
        (without(num_hidden_layers=True), "num_hidden_layers must be a whole number, got True"),
        (without(num_hidden_layers=0), "num_hidden_layers must be between 1 and 10,000, got 0"),
        (without(vocab_size=-5), "vocab_size must be between 1 and 10,000,000, got -5"),
        (without(hidden_size=10**12), "hidden_size must be between 1 and 10,000,000"),
        (without(hidden_size=4097), "hidden_size 4097 is no multiple of num_attention_heads 32"),
        (without(num_key_value_heads=5), "num_attention_heads 32 is no multiple of num_key_value_heads 5"),
        (without(tie_word_embeddings="no"), "tie_word_embeddings must be true or false, got 'no'"),
        (without("head_dim", model_type="qwen3"), "no head_dim, and a qwen3 head is not hidden size over heads"),
        (without(layer_types=["full_attention"]), "layer_types has 1 entries for 32 layers"),
        (without(layer_types=["linear_attention"] * 32), "layer_types has 'linear_attention'"),
        (without(model_type="mixtral"), "A mixtral has experts, and the config counts none"),
        (without(num_local_experts=4, num_experts_per_tok=6), "num_experts_per_tok 6 is more than num_local_experts 4"),
        ({"model_type": "bert", "hidden_size": 768}, "model_type is 'bert', which is not a causal language model"),
        ({"model_type": "t5", "is_encoder_decoder": True}, "is_encoder_decoder is true: t5 reads with an encoder"),
        (without(architectures=["LlamaForSequenceClassification"]), "architectures names LlamaForSequence"),
        ({"model_type": "mamba", "num_hidden_layers": 4, "hidden_size": 8, "state_size": 16}, "no KV cache"),
        ({"text_config": {"hidden_size": 8}}, "no text_config.num_hidden_layers"),
        ([1, 2], "one JSON object with named fields, got a list"),
        (dict(NAMED["GPT-2"].config) | {"n_positions": None}, "no max_position_embeddings"),
    ],
)
def test_what_cannot_be_names_the_field_and_the_fix(config, words):
    with pytest.raises(InvalidConfig) as raised:
        from_config(config)
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("text", "words"), [("", "no config here yet"), ('{"a": 1,', "not JSON"), ("hello", "not JSON"), ("3", "got a int")]
)
def test_text_that_is_no_config_says_what_to_paste(text, words):
    with pytest.raises(InvalidConfig, match=words):
        from_json(text)


def test_a_hub_id_without_a_network_offers_to_paste(monkeypatch):
    from huggingface_hub.errors import LocalEntryNotFoundError

    def unreachable(*args, **kwargs):
        raise LocalEntryNotFoundError("offline")

    monkeypatch.setattr("engine.models.hub_shape.hf_hub_download", unreachable)
    with pytest.raises(ModelUnreachable, match=r"paste the model's config.json"):
        shape_on_hub("somebody/some-model")


def test_a_hub_config_is_read_from_its_file(monkeypatch, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    monkeypatch.setattr("engine.models.hub_shape.hf_hub_download", lambda *a, **k: str(tmp_path / "config.json"))
    assert shape_on_hub(" meta/llama ") == NAMED["Llama 3.1 8B"].shape


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b" " * 5_000_000, "has 5,000,000 bytes; a config is never so long"),
        (b"\xff\xfe{}", "is no text in UTF-8"),
        (b'{"a": ' * 1000, "nests 1,000 brackets"),
    ],
)
def test_a_fetched_file_that_is_no_config_is_refused_in_words(monkeypatch, tmp_path, content, words):
    (tmp_path / "config.json").write_bytes(content)
    monkeypatch.setattr("engine.models.hub_shape.hf_hub_download", lambda *a, **k: str(tmp_path / "config.json"))
    with pytest.raises(InvalidConfig, match=words):
        shape_on_hub("somebody/some-model")


@pytest.mark.parametrize("name", ["../etc/passwd", "a b", "https://huggingface.co/x/y", ""])
def test_what_is_no_hub_id_is_not_asked_for(name, monkeypatch):
    monkeypatch.setattr("engine.models.hub_shape.hf_hub_download", lambda *a, **k: pytest.fail("asked the Hub"))
    with pytest.raises(ModelNotFound, match="is no Hub id"):
        shape_on_hub(name)
