"""The text model's part of a config, which may lie within that of a model that also sees or hears."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.errors import InvalidConfig
from engine.shapes.fields import shown

INNER_CONFIGS = ("text_config", "llm_config", "language_config")
ENCODERS = frozenset(
    {
        "bert",
        "roberta",
        "xlm-roberta",
        "distilbert",
        "electra",
        "deberta",
        "deberta-v2",
        "albert",
        "modernbert",
        "vit",
        "clip",
        "siglip",
        "wav2vec2",
        "t5",
        "bart",
        "whisper",
    }
)


def text_part(config: object) -> tuple[Mapping[str, Any], str, str]:
    """The text model's part of a config, where it lies, and its model type."""
    if not isinstance(config, Mapping):
        raise InvalidConfig(f"A config is one JSON object with named fields, got a {type(config).__name__}.")
    outer = _model_type(config)
    inner = next((name for name in INNER_CONFIGS if isinstance(config.get(name), Mapping)), None)
    if inner:
        text = dict(config[inner])
        if "tie_word_embeddings" in config:
            text.setdefault("tie_word_embeddings", config["tie_word_embeddings"])
        kind = _model_type(text) or f"{outer}_text"
        return text, f"{inner}.", kind
    if config.get("is_encoder_decoder") is True:
        raise InvalidConfig(
            f"is_encoder_decoder is true: {outer or 'this'} reads with an encoder. "
            "Loupe's arithmetic is for causal language models, such as Llama, Qwen or GPT-2."
        )
    named = config.get("architectures")
    if named is not None and not (isinstance(named, (list, tuple)) and all(isinstance(one, str) for one in named)):
        raise InvalidConfig(f"architectures must be a list of names, got {shown(named)}. Mend it, or take it out.")
    if outer in ENCODERS or (named and not any("CausalLM" in one or "LMHead" in one for one in named)):
        what = f"architectures names {named[0][:80]}" if named else f"model_type is {outer!r}"
        raise InvalidConfig(
            f"{what}, which is not a causal language model. Give a decoder's config, one whose architectures "
            "end in ForCausalLM."
        )
    return config, "", outer


def _model_type(config: Mapping[str, Any]) -> str:
    found = config.get("model_type")
    if found is not None and not isinstance(found, str):
        raise InvalidConfig(f"model_type must be a name, got {shown(found)}. Mend it, or take it out.")
    return found or ""
