"""A transformers config, as plain JSON, to a shape. Needs neither transformers nor the network.

Every error names the field and the fix. What a config leaves out is taken from transformers' own default for
its type where that is known, and the shape says so (`assumed`). What nobody understood stands beside the numbers
(`doubts`), or the config is refused: a type that is not known, with a field that may say what is cached.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from engine.costs.shape import ModelShape
from engine.errors import InvalidConfig
from engine.shapes.cache_dialects import CACHE_DIALECTS
from engine.shapes.cached import read_caching
from engine.shapes.config_text import parse
from engine.shapes.dialects import DIALECTS, HEAD_DIM_REQUIRED, UNKNOWN, Dialect
from engine.shapes.fields import NAMES, Fields
from engine.shapes.layer_kinds import LISTS
from engine.shapes.layers import read_experts, read_latent
from engine.shapes.text_part import text_part
from engine.shapes.unread import suspects


@dataclass(frozen=True, slots=True)
class Reading:
    """A config that was read once.

    essential  the fields that were looked at, or that raised a doubt: they alone give the same shape
    """

    shape: ModelShape
    essential: dict[str, Any]


def from_json(text: str) -> ModelShape:
    """A shape from pasted config.json text. Raises InvalidConfig."""
    return from_config(parse(text))


def from_config(config: Mapping[str, Any]) -> ModelShape:
    """A shape from a config's mapping. Raises InvalidConfig."""
    return read(config).shape


def read(config: Mapping[str, Any]) -> Reading:
    """A shape from a config's mapping, and the fields that it depends on. Raises InvalidConfig."""
    text, prefix, kind = text_part(config)
    dialect = DIALECTS.get(kind) or CACHE_DIALECTS.get(kind) or UNKNOWN
    fields = Fields(text, dialect.defaults, prefix)
    is_known = kind in DIALECTS or kind in CACHE_DIALECTS
    if not is_known:
        named = f"model_type {kind[:60]!r} is not known here" if kind else "there is no model_type"
        fields.doubts.append(f"{named}: read like a Llama (gated MLP, two RMS norms a layer, rotated positions)")
    try:
        shape = _shape(fields, kind, dialect)
    except InvalidConfig:
        raise
    except ValueError as error:
        raise InvalidConfig(f"These sizes make no decoder: {error}") from error
    found = suspects(text, fields.seen, shape.num_layers, has_states=dialect.states)
    around = {name: value for name, value in config.items() if prefix and not isinstance(value, Mapping)}
    outside = suspects(around, (), shape.num_layers)
    named_found = ", ".join([*(f"{prefix}{name[:60]}" for name in found), *(name[:60] for name in outside)][:6])
    if named_found and not is_known:
        raise InvalidConfig(
            f"model_type {kind[:60]!r} is not known here, and {named_found} may say what its layers cache: the cache "
            "of such a model cannot be computed. Where a field says no such thing, take it out of the text."
        )
    doubts = [*fields.doubts]
    if named_found:
        doubts.append(f"{named_found}: not known of a {kind}, and may change what its layers cache")
    kept = {name: value for name, value in text.items() if name in fields.seen or name in found}
    outer = {name: config[name] for name in outside}
    return Reading(replace(shape, doubts=tuple(doubts)), outer | _essential(config, prefix, kept))


def _essential(config: Mapping[str, Any], prefix: str, kept: dict[str, Any]) -> dict[str, Any]:
    """What was read, where it lay."""
    named = {"model_type": config["model_type"]} if config.get("model_type") else {}
    if not prefix:
        return named | kept
    inner = prefix.removesuffix(".")
    if config[inner].get("model_type"):
        kept = {"model_type": config[inner]["model_type"]} | kept
    tied = {"tie_word_embeddings": config["tie_word_embeddings"]} if "tie_word_embeddings" in config else {}
    return named | tied | {inner: kept}


def _shape(fields: Fields, kind: str, dialect: Dialect) -> ModelShape:
    layers, hidden, latent = _layers(fields, dialect), fields.size("hidden_size"), read_latent(fields, dialect)
    fields.seen.update(dialect.aside, {"head_dim"} if latent else ())
    heads = _heads(fields, kind)
    head_dim = latent.nope + latent.rope if latent else _head_dim(fields, kind, hidden, heads)
    kv_heads = _kv_heads(fields, kind, heads)
    caching = read_caching(fields, dialect, layers, kv_heads=kv_heads, head_dim=head_dim, latent=latent)
    base = ModelShape(
        num_layers=layers,
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=head_dim,
        hidden_size=hidden,
        intermediate_size=0,
        vocab_size=fields.size("vocab_size"),
        latent=latent,
        window=caching.window,
        context_limit=fields.optional_size("context"),
        cache=caching.layers,
        remarks=caching.remarks,
    )
    shape = base if caching.layers else _with_weights(base, fields, kind, dialect)
    return replace(shape, assumed=tuple(fields.assumed))


def _with_weights(base: ModelShape, fields: Fields, kind: str, dialect: Dialect) -> ModelShape:
    """The shape with what its parameters and operations depend on."""
    silent = fields.get("tie_word_embeddings") is None
    queries, keys = base.num_heads * base.head_dim, base.num_kv_heads * base.head_dim
    return replace(
        base,
        intermediate_size=_intermediate(fields, kind, dialect, base.hidden_size),
        mlp_matrices=dialect.mlp_matrices,
        tied=dialect.tied if silent else fields.flag("tie_word_embeddings"),
        qkv_bias=fields.flag(dialect.qkv_bias),
        output_bias=fields.flag(dialect.output_bias),
        mlp_bias=fields.flag(dialect.mlp_bias),
        head_bias=fields.flag(dialect.head_bias),
        norms_per_layer=_norms(fields, kind, dialect),
        norm_vectors=dialect.norm_vectors,
        qk_norm=_qk_norm(fields, dialect, queries, keys, base.head_dim),
        sinks=dialect.sinks,
        embedding_norm=dialect.embedding_norm,
        learned_positions=fields.size("context") + dialect.extra_positions if dialect.positions else 0,
        experts=read_experts(fields, kind, dialect, base.num_layers),
    )


def _layers(fields: Fields, dialect: Dialect) -> int:
    """How many layers there are; a hybrid may only list them."""
    found = fields.optional_size("num_layers")
    if found is None and dialect.states:
        pattern = fields.get("hybrid_override_pattern")
        listed = [fields.names(name) for name in LISTS]
        found = next((len(one) for one in listed if one), None) or (len(pattern) if isinstance(pattern, str) else None)
    return found or fields.size("num_layers")


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
    fields.seen.update(NAMES["num_kv_heads"])
    if kind in ("falcon", "gpt_bigcode"):
        grouped = fields.flag("new_decoder_architecture")
        if not grouped:
            return 1 if fields.get("multi_query") is None or fields.flag("multi_query") else heads
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
    if kind != "falcon":
        return dialect.norms_per_layer
    if fields.get("parallel_attn") is not None and not fields.flag("parallel_attn"):
        return dialect.norms_per_layer
    separate = fields.optional_size("num_ln_in_parallel_attn")
    return separate or (2 if fields.flag("new_decoder_architecture") else 1)


def _qk_norm(fields: Fields, dialect: Dialect, queries: int, keys: int, head_dim: int) -> int:
    if not dialect.qk_norm or (dialect.qk_norm_field and not fields.flag(dialect.qk_norm_field)):
        return 0
    one = 2 * head_dim if dialect.qk_norm == "head" else queries + keys
    return one * dialect.qk_norm_vectors
