"""The shape of a model that is loaded: what its own config says, held against its weights."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from transformers import AutoModelForCausalLM, PreTrainedConfig

from engine.costs import CachedLayers
from engine.errors import InvalidConfig
from engine.models.loaded_shape import shape_of, shape_of_model
from tests.engine.architectures import ARCHITECTURES, tiny_model
from tests.engine.shapes.small_configs import small_config


@pytest.mark.parametrize("name", ["llama", "gpt2", "mixtral", "deepseek_v3", "gemma2"])
def test_the_weights_of_a_known_type_are_those_that_are_loaded(name):
    model = tiny_model(name)
    assert name in ARCHITECTURES
    shape = shape_of_model(model)
    assert shape.knows_weights
    assert shape == shape_of(model.config)


def test_a_type_that_was_read_like_another_has_no_weights_by_formula_but_its_cache_and_the_doubt():
    """DiffLlama has lambdas and a norm that a Llama has not."""
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(small_config("diffllama"))
    shape = shape_of_model(model)
    assert not shape.knows_weights
    assert shape.kv_elements_per_token == 8 * 2 * 2 * 16
    assert "model_type 'diffllama' is not known here" in shape.doubts[0]
    loaded = sum(one.numel() for one in model.parameters())
    assert shape.doubts[1].endswith(f"parameters, and {loaded:,} are loaded")


def test_a_type_that_is_refused_has_the_cache_it_would_have_were_all_layers_alike_and_says_so():
    shape = shape_of(small_config("doge"))
    assert shape.cache == (CachedLayers(layers=8, heads=2, key=16, value=16),)
    assert "as if all its layers were alike" in shape.doubts[0]
    assert "keep_window_size" in shape.doubts[0]


def test_a_config_that_does_not_say_how_many_layers_there_are_is_refused():
    with pytest.raises(InvalidConfig, match="Nor does its config give one number for num_hidden_layers"):
        shape_of(PreTrainedConfig())


def test_a_shape_of_the_cache_alone_is_equal_in_bytes():
    shape = shape_of(small_config("mistral"))
    alone = replace(shape, cache=shape.cached_layers, window=None)
    assert alone.kv_bytes(100, 2) == shape.kv_bytes(100, 2) == 8 * 2 * 2 * 16 * 16 * 2
