"""The shape of a model that is loaded: from its own config, whatever its architecture."""

from __future__ import annotations

from typing import Any

from transformers import PreTrainedConfig

from engine.costs.shape import ModelShape
from engine.errors import InvalidConfig
from engine.shapes.config import from_config


def shape_of(config: PreTrainedConfig) -> ModelShape:
    """The shape of a model with this config.

    An architecture that is not covered still has a cache: its shape holds what that depends on, and says so.
    """
    try:
        return from_config(config.to_dict())
    except InvalidConfig as error:
        return _cache_only(config.get_text_config(), str(error))


def _cache_only(text: Any, why: str) -> ModelShape:
    heads = int(text.num_attention_heads)
    return ModelShape(
        num_layers=int(text.num_hidden_layers),
        num_heads=heads,
        num_kv_heads=int(getattr(text, "num_key_value_heads", None) or heads),
        head_dim=int(getattr(text, "head_dim", None) or text.hidden_size // heads),
        hidden_size=int(text.hidden_size),
        intermediate_size=0,
        vocab_size=int(text.vocab_size),
        assumed=(f"only the cache is known of this architecture: {why}",),
    )
