"""Can this architecture be shown at all? Answered from config.json, before any weight is read.

Not every model that writes text is a decoder whose attention can be looked at: some read with an encoder,
some fill in masked words, some compute attention without transformers' common interface.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, AutoConfig, PreTrainedConfig

from engine.errors import CorruptModel, UnsupportedModel
from engine.models.fit import read_json
from engine.models.load_errors import in_short
from engine.models.safetensors_files import StoredTensor


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
        raise CorruptModel(f"{folder / 'config.json'} cannot be used: {in_short(error)}") from error
    _check_decoder(config, raw, name)
    return config


# Layers whose every token leaves a key and a value that later queries read; transformers names other kinds, too.
SEEN_LAYERS = ("full_attention", "sliding_attention", "chunked_attention")


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
    _check_layer_kinds(text, model_class, name)
    if not model_class._can_set_attn_implementation():
        raise UnsupportedModel(
            f"{name} ({config.model_type}) computes attention without transformers' attention interface, so its "
            "attention cannot be seen. Llama, Qwen, Gemma, GPT-2, Phi, Mistral and most others can."
        )


def _check_layer_kinds(text: Any, model_class: Any, name: str) -> None:
    """Hybrids keep a running state in some layers (Mamba, linear attention, convolutions), or read chosen keys only."""
    kinds = Counter(str(kind) for kind in getattr(text, "layer_types", None) or ())
    others = [f"{count} of {kinds.total()} are {kind}" for kind, count in kinds.items() if kind not in SEEN_LAYERS]
    if not others and getattr(model_class, "_is_stateful", False):
        others = ["they keep a running state instead of keys and values"]
    if others:
        raise UnsupportedModel(
            f"{name} ({text.model_type}) has layers that Loupe does not show: {', '.join(others)}. "
            f"It shows models whose layers are all of {', '.join(SEEN_LAYERS[:-1])} or {SEEN_LAYERS[-1]}."
        )


def check_sizes(folder: Path, config: PreTrainedConfig, weights: Mapping[str, StoredTensor]) -> None:
    """Hold the config's sizes against the tensors: what a config alone asks for would be built before it is found out.

    Each layer has a tensor of its own, and a vocabulary's table lies in the files as a whole.
    """
    text, total = config.get_text_config(), sum(tensor.values for tensor in weights.values())
    layers, hidden, vocabulary = (
        _size(text, name, folder) for name in ("num_hidden_layers", "hidden_size", "vocab_size")
    )
    if layers > len(weights):
        raise CorruptModel(
            f"{folder} lacks weights: its config asks for {layers:,} layers, and it has {len(weights):,} "
            "tensors. Fetch the model again."
        )
    for name in (
        "intermediate_size",
        "num_attention_heads",
        "num_key_value_heads",
        "head_dim",
        "moe_intermediate_size",
    ):
        if getattr(text, name, None) is not None and _size(text, name, folder) > total:
            raise CorruptModel(f"{folder} holds {total:,} values; its config says {name} {getattr(text, name):,}.")
    embedding = min(
        hidden, getattr(text, "embedding_size", None) or hidden, getattr(text, "word_embed_proj_dim", hidden)
    )
    if vocabulary * embedding > total:
        raise CorruptModel(
            f"{folder} lacks weights: a vocabulary of {vocabulary:,} times {embedding:,} is more than the {total:,} "
            "values it holds. config.json and weights do not belong together; fetch the model again."
        )


def _size(text: Any, name: str, folder: Path) -> int:
    value = getattr(text, name, None)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise CorruptModel(
            f"{folder / 'config.json'} says {name} is {str(value)[:40]}; it must be a whole number above 0."
        )
    return value
