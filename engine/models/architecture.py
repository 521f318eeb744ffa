"""Can this architecture be shown at all? Answered from config.json, before any weight is read.

Not every model that writes text is a decoder whose attention can be looked at: some read with an encoder,
some fill in masked words, some compute attention without transformers' common interface.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, AutoConfig, PreTrainedConfig

from engine.errors import CorruptModel, UnsupportedModel
from engine.models.fit import read_json


def read_config(folder: Path, name: str) -> PreTrainedConfig:
    """The folder's config, if it is a decoder that Loupe can look into."""
    raw = read_json(folder / "config.json")
    model_type = raw.get("model_type")
    if not isinstance(model_type, str):
        raise UnsupportedModel(f"{folder / 'config.json'} names no model_type, so its architecture is unknown.")
    try:
        config: PreTrainedConfig = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # config classes check themselves in many ways, and not all raise ValueError
        if "auto_map" in raw:
            raise UnsupportedModel(
                f"{name} needs program code from its own folder, which Loupe does not run."
            ) from error
        if isinstance(error, (KeyError, ValueError)) and "does not recognize this architecture" in str(error):
            raise UnsupportedModel(f"{name} is of type {model_type!r}, which transformers does not know.") from error
        raise CorruptModel(f"{folder / 'config.json'} cannot be used: {error}") from error
    _check_decoder(config, raw, name)
    return config


def _check_decoder(config: PreTrainedConfig, raw: dict[str, Any], name: str) -> None:
    if config.is_encoder_decoder:
        raise UnsupportedModel(f"{name} is an encoder-decoder ({config.model_type}); Loupe shows decoder-only models.")
    if type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING:
        raise UnsupportedModel(f"{name} ({config.model_type}) does not write text token by token.")
    model_class: Any = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]
    named = raw.get("architectures") or [model_class.__name__]
    if model_class.__name__ not in named:
        raise UnsupportedModel(f"{name} is a {named[0]}; what Loupe needs of this type is a {model_class.__name__}.")
    text = config.get_text_config()
    if getattr(text, "num_attention_heads", None) is None:
        raise UnsupportedModel(f"{name} ({config.model_type}) has no attention heads, so there is nothing to look at.")
    if not model_class._can_set_attn_implementation():
        raise UnsupportedModel(
            f"{name} ({config.model_type}) computes attention without transformers' attention interface, so its "
            "attention cannot be seen. Llama, Qwen, Gemma, GPT-2, Phi, Mistral and most others can."
        )
