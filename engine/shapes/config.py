"""A transformers config, as plain JSON, to a shape. Needs neither transformers nor the network.

Every error names the field and the fix. What a config leaves out is taken from transformers' own default for
its type where that is known, and the shape says so (`assumed`); it is never guessed from another model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from engine.costs.shape import ModelShape
from engine.errors import InvalidConfig
from engine.shapes.dialects import DIALECTS, HEAD_DIM_REQUIRED, UNKNOWN, Dialect
from engine.shapes.fields import Fields
from engine.shapes.layers import read_experts, read_latent, read_window

INNER_CONFIGS = ("text_config", "llm_config", "language_config")
ENCODERS = frozenset({"bert", "roberta", "xlm-roberta", "distilbert", "electra", "deberta", "deberta-v2", "albert",
                      "modernbert", "vit", "clip", "siglip", "wav2vec2", "t5", "bart", "whisper"})  # fmt: skip


def from_json(text: str) -> ModelShape:
    """A shape from pasted config.json text. Raises InvalidConfig."""
    if not text.strip():
        raise InvalidConfig("There is no config here yet. Paste the whole of a model's config.json, braces included.")
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidConfig(
            f"This is not JSON: {error.msg} in line {error.lineno}, column {error.colno}. "
            "Paste the whole of config.json, from the first brace to the last."
        ) from error
    return from_config(found)


def from_config(config: Mapping[str, Any]) -> ModelShape:
    """A shape from a config's mapping. Raises InvalidConfig."""
    text, prefix, kind = _text_part(config)
    dialect = DIALECTS.get(kind, UNKNOWN)
    fields = Fields(text, dialect.defaults, prefix)
    if kind not in DIALECTS:
        named = f"model_type {kind!r} is not known here" if kind else "there is no model_type"
        fields.assumed.append(f"{named}: read like a Llama (gated MLP, two RMS norms a layer, rotated positions)")
    try:
        return _shape(fields, kind, dialect)
    except InvalidConfig:
        raise
    except ValueError as error:
        raise InvalidConfig(f"These sizes make no decoder: {error}") from error


def _text_part(config: object) -> tuple[Mapping[str, Any], str, str]:
    """The text model's part of a config, where it lies, and its model type."""
    if not isinstance(config, Mapping):
        raise InvalidConfig(f"A config is one JSON object with named fields, got a {type(config).__name__}.")
    outer = str(config.get("model_type") or "")
    inner = next((name for name in INNER_CONFIGS if isinstance(config.get(name), Mapping)), None)
    if inner:
        text = dict(config[inner])
        if "tie_word_embeddings" in config:
            text.setdefault("tie_word_embeddings", config["tie_word_embeddings"])
        kind = str(text.get("model_type") or f"{outer}_text")
        return text, f"{inner}.", kind
    if config.get("is_encoder_decoder") is True:
        raise InvalidConfig(
            f"is_encoder_decoder is true: {outer or 'this'} reads with an encoder. "
            "Loupe's arithmetic is for causal language models, such as Llama, Qwen or GPT-2."
        )
    named = config.get("architectures") or []
    if outer in ENCODERS or (named and not any("CausalLM" in n or "LMHead" in n for n in map(str, named))):
        what = f"architectures names {named[0]}" if named else f"model_type is {outer!r}"
        raise InvalidConfig(
            f"{what}, which is not a causal language model. Give a decoder's config, one whose architectures "
            "end in ForCausalLM."
        )
    return config, "", outer


def _shape(fields: Fields, kind: str, dialect: Dialect) -> ModelShape:
    layers, hidden, latent = fields.size("num_layers"), fields.size("hidden_size"), read_latent(fields)
    heads = _heads(fields, kind)
    head_dim = latent.nope + latent.rope if latent else _head_dim(fields, kind, hidden, heads)
    kv_heads = _kv_heads(fields, kind, heads)
    experts = read_experts(fields, kind, dialect, layers)
    silent = fields.values.get("tie_word_embeddings") is None
    context = fields.optional_size("context")
    return ModelShape(
        num_layers=layers,
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=head_dim,
        hidden_size=hidden,
        intermediate_size=_intermediate(fields, kind, dialect, hidden),
        vocab_size=fields.size("vocab_size"),
        mlp_matrices=dialect.mlp_matrices,
        tied=dialect.tied if silent else fields.flag("tie_word_embeddings"),
        qkv_bias=fields.flag(dialect.qkv_bias),
        output_bias=fields.flag(dialect.output_bias),
        mlp_bias=fields.flag(dialect.mlp_bias),
        head_bias=fields.flag(dialect.head_bias),
        norms_per_layer=_norms(fields, kind, dialect),
        norm_vectors=dialect.norm_vectors,
        qk_norm=_qk_norm(fields, dialect, heads * head_dim, kv_heads * head_dim, head_dim),
        sinks=dialect.sinks,
        embedding_norm=dialect.embedding_norm,
        learned_positions=fields.size("context") + dialect.extra_positions if dialect.positions else 0,
        experts=experts,
        latent=latent,
        window=read_window(fields, dialect, layers),
        context_limit=context,
        assumed=tuple(fields.assumed),
    )


def _heads(fields: Fields, kind: str) -> int:
    if fields.optional_size("num_heads") is None and ("state_size" in fields.values or kind.startswith("mamba")):
        raise InvalidConfig(
            f"{kind} has a state in place of attention heads, and no KV cache. Give a model with num_attention_heads."
        )
    return fields.size("num_heads")


def _head_dim(fields: Fields, kind: str, hidden: int, heads: int) -> int:
    given = fields.optional_size("head_dim")
    if given is not None:
        return given
    if kind in HEAD_DIM_REQUIRED:
        raise InvalidConfig(
            f"The config has no {fields.prefix}head_dim, and a {kind} head is not hidden size over heads. Add it."
        )
    if hidden % heads:
        raise InvalidConfig(
            f"{fields.prefix}hidden_size {hidden} is no multiple of num_attention_heads {heads}, so the heads' width "
            "is unclear. Add head_dim, or mend one of the two."
        )
    return hidden // heads


def _kv_heads(fields: Fields, kind: str, heads: int) -> int:
    if kind in ("falcon", "gpt_bigcode"):
        grouped = fields.flag("new_decoder_architecture")
        if not grouped:
            return 1 if fields.values.get("multi_query", True) else heads
    kv_heads = fields.optional_size("num_kv_heads") or heads
    if kv_heads > heads or heads % kv_heads:
        raise InvalidConfig(
            f"{fields.prefix}num_attention_heads {heads} is no multiple of num_key_value_heads {kv_heads}: every "
            "key head serves the same number of query heads. Mend one of the two."
        )
    return kv_heads


def _intermediate(fields: Fields, kind: str, dialect: Dialect, hidden: int) -> int:
    if kind == "llama4_text":  # its dense layers' width has a name of its own
        return fields.size("intermediate_size_mlp")
    given = fields.optional_size("intermediate_size")
    if given is None and dialect.inner_factor:
        return dialect.inner_factor * hidden
    if given is None and fields.optional_size("moe_intermediate_size"):
        return 0  # every layer has experts
    return fields.size("intermediate_size") if given is None else given


def _norms(fields: Fields, kind: str, dialect: Dialect) -> int:
    if kind == "opt" and fields.optional_size("word_embed_proj_dim") not in (None, fields.size("hidden_size")):
        raise InvalidConfig(
            "word_embed_proj_dim differs from hidden_size: embeddings of another width are not covered here."
        )
    if kind == "stablelm" and fields.flag("use_parallel_residual"):
        return 1
    if kind != "falcon" or fields.values.get("parallel_attn") is False:
        return dialect.norms_per_layer
    separate = fields.optional_size("num_ln_in_parallel_attn")
    return separate or (2 if fields.flag("new_decoder_architecture") else 1)


def _qk_norm(fields: Fields, dialect: Dialect, queries: int, keys: int, head_dim: int) -> int:
    if not dialect.qk_norm or (dialect.qk_norm_field and not fields.flag(dialect.qk_norm_field)):
        return 0
    one = 2 * head_dim if dialect.qk_norm == "head" else queries + keys
    return one * dialect.qk_norm_vectors
