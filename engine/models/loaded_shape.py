"""The shape of a model that is loaded: from its own config, whatever its architecture."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from transformers import PreTrainedConfig, PreTrainedModel

from engine.costs.shape import ModelShape
from engine.costs.sizes import CachedLayers
from engine.errors import InvalidConfig
from engine.shapes.config import from_config


def shape_of_model(model: PreTrainedModel) -> ModelShape:
    """The shape of a loaded model, its weights taken back where the model has others: it was read like another one."""
    shape, parameters = shape_of(model.config), sum(one.numel() for one in model.parameters())
    routing = sum(one.numel() for name, one in model.named_buffers() if name.endswith("e_score_correction_bias"))
    if not shape.knows_weights or shape.parameters.total == parameters + routing:
        return shape
    said = f"by the formula it has {shape.parameters.total:,} parameters, and {parameters:,} are loaded"
    return replace(shape, cache=shape.cached_layers, window=None, doubts=(*shape.doubts, said))


def shape_of(config: PreTrainedConfig) -> ModelShape:
    """The shape of a model with this config.

    An architecture that is not covered has a cache all the same: its shape holds what it would be if all layers were
    alike, and the doubt. Raises InvalidConfig where the config does not even say that.
    """
    try:
        return from_config(config.to_dict())
    except InvalidConfig as error:
        return _cache_only(config.get_text_config(), str(error))


def _cache_only(text: Any, why: str) -> ModelShape:
    layers, heads = _number(text, "num_hidden_layers", why), _number(text, "num_attention_heads", why)
    hidden = _number(text, "hidden_size", why)
    kv_heads = _number(text, "num_key_value_heads", why, heads)
    width = _number(text, "head_dim", why, hidden // heads)
    return ModelShape(
        num_layers=layers,
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=width,
        hidden_size=hidden,
        intermediate_size=0,
        vocab_size=_number(text, "vocab_size", why),
        cache=(CachedLayers(layers=layers, heads=kv_heads, key=width, value=width),),
        doubts=(f"only the cache is computed of this architecture, as if all its layers were alike: {why}",),
    )


def _number(text: Any, name: str, why: str, otherwise: int | None = None) -> int:
    found = getattr(text, name, None)
    found = otherwise if found is None else found
    if type(found) is not int or found < 1:
        raise InvalidConfig(f"{why} Nor does its config give one number for {name}.")
    return found
