"""A loaded model in numbers: what the start page, the budgets and the stop rules go by.

A tied embedding is one set of weights under two names and counts once. End ids are a union: chat models end
a turn with another id than their tokenizer's end of text.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from transformers import GenerationConfig, PreTrainedModel

from engine.facts import ModelInfo
from engine.forward.rotary import rope_switch
from engine.measure.clocks import unique_bytes
from engine.models.loaded_shape import shape_of_model
from engine.models.source import Source
from engine.text.tokenizer import Tokenizer

NOT_DRAWING = ("transformers_version", "_from_model_config", "use_cache", "output_attentions", "output_hidden_states")


def describe(model_id: str, source: Source, model: PreTrainedModel, tokenizer: Tokenizer) -> ModelInfo:
    parameters = sum(parameter.numel() for parameter in model.parameters())
    shape = shape_of_model(model)
    first = next(model.parameters())
    switch = rope_switch(model)
    return ModelInfo(
        id=model_id,
        name=source.name,
        architecture=type(model).__name__,
        origin=source.origin,
        licence=source.licence,
        folder=str(source.folder),
        dtype=str(first.dtype).removeprefix("torch."),
        device=str(first.device),
        parameters=parameters,
        weight_bytes=unique_bytes(list(model.parameters())),
        num_layers=shape.num_layers,
        num_heads=shape.num_heads,
        num_kv_heads=shape.num_kv_heads,
        head_dim=shape.head_dim,
        vocab_size=shape.vocab_size,
        shape=shape,
        kv_bytes_per_token=shape.kv_bytes_per_token(first.dtype.itemsize),
        context_limit=_context_limit(model.config.get_text_config()),
        end_ids=_end_ids(model, tokenizer),
        has_chat_template=tokenizer.has_chat_template,
        defaults=_defaults(model.generation_config),
        notes=(*source.notes, *shape.doubts, *_rotary_note(switch)),
        rope_switch=switch,
    )


def _rotary_note(switch: int | None) -> tuple[str, ...]:
    if switch is None:
        return ()
    return (
        f"Texts of more than {switch:,} tokens get other rotary embeddings (longrope), in all their cached keys. A run "
        f"keeps the ones of its prompt, so a run that begins with fewer than {switch:,} tokens ends at {switch:,}.",
    )


def _context_limit(config: Any) -> int | None:
    limit = getattr(config, "max_position_embeddings", None)  # GPT-2's n_positions answers to this name too
    return limit if isinstance(limit, int) and limit > 0 else None


def _end_ids(model: PreTrainedModel, tokenizer: Tokenizer) -> tuple[int, ...]:
    """The tokenizer's end and all of the generation config's; an id outside the vocabulary can never be drawn."""
    declared = getattr(model.generation_config, "eos_token_id", None)
    ids = {tokenizer.end_id, *(declared if isinstance(declared, (list, tuple)) else [declared])}
    return tuple(sorted(int(i) for i in ids if i is not None and i >= 0))


def _defaults(config: GenerationConfig | None) -> MappingProxyType[str, object]:
    """How the model's authors would draw. Shown; applied only when asked for.

    Token ids are left out (end_ids has them), and so is what says how to run and not how to draw.
    """
    if config is None:
        return MappingProxyType({})
    chosen = {
        name: _frozen(value)
        for name, value in config.to_diff_dict().items()
        if name not in NOT_DRAWING and not name.endswith("_token_id") and value is not None
    }
    return MappingProxyType(chosen)


def _frozen(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value
