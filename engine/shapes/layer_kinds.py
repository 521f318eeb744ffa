"""What each layer does with keys and values: as the config lists it, or else by its type's own rule."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from engine.errors import InvalidConfig
from engine.shapes.dialects import Dialect
from engine.shapes.fields import Fields

FULL, SLIDING, CHUNKED, STATE, BOTH, INDEXED, NOTHING, SHARED = (
    "full_attention",
    "sliding_attention",
    "chunked_attention",
    "linear_attention",
    "hybrid",
    "indexed_attention",
    "mlp",
    "shared",
)
OTHER_NAMES = MappingProxyType(
    {
        "attention": FULL,
        "mamba": STATE,
        "conv": STATE,
        "recurrent": STATE,
        "moe": NOTHING,
        "global": FULL,
        "local": SLIDING,
        "deepseek_sparse_attention": INDEXED,
    }
)
LISTS = ("layer_types", "layers_block_type")
LETTERS = MappingProxyType({"M": STATE, "*": FULL, "-": NOTHING, "E": NOTHING})  # of Nemotron's pattern
Rule = Callable[[Fields, Dialect, int], list[str]]


def kinds_of(fields: Fields, dialect: Dialect, layers: int) -> tuple[str, ...]:
    """The kind of every layer. Raises InvalidConfig for a list of another length or a kind that is not known."""
    by_rule = RULES[dialect.layout](fields, dialect, layers)
    listed = [(name, kinds) for name in LISTS if (kinds := fields.names(name)) is not None]
    if not listed:
        return _with_sharing(fields, dialect, tuple(by_rule))
    name, given = listed[0]
    if len(given) != layers:
        raise InvalidConfig(f"{fields.prefix}{name} has {len(given)} entries for {layers} layers.")
    kinds = tuple(OTHER_NAMES.get(kind, kind) for kind in given)
    if other := next((said for said, kind in zip(given, kinds, strict=True) if kind not in _possible(dialect)), None):
        raise InvalidConfig(
            f"{fields.prefix}{name} has {other[:80]!r}: what such a layer caches is not known here for this type. "
            "Models with attention of the usual kinds in every layer are covered."
        )
    if strange := sorted(set(kinds) & {SLIDING, CHUNKED} - _usual(dialect)):
        fields.doubts.append(f"{fields.prefix}{name} has {strange[0]!r}, which this type is not known to have")
    return _with_sharing(fields, dialect, kinds)


def _usual(dialect: Dialect) -> set[str]:
    """Short-sighted layers that a type is known to have."""
    return ({SLIDING} if dialect.has_windows else set()) | ({CHUNKED} if dialect.layout == "chunks" else set())


def _possible(dialect: Dialect) -> set[str]:
    """Kinds whose cache can be told for a type."""
    states = {STATE, BOTH, NOTHING} if dialect.states else set()
    return {FULL, SLIDING, CHUNKED, *states, *({INDEXED} if dialect.index else ())}


def _with_sharing(fields: Fields, dialect: Dialect, kinds: tuple[str, ...]) -> tuple[str, ...]:
    """The last layers read the keys and values of earlier ones, where the type does that."""
    if dialect.wide_globals:
        kinds = (*kinds[:-1], FULL)  # transformers makes the last layer so, whatever a list says
    if not dialect.shares:
        return kinds
    shared = fields.whole("num_kv_shared_layers")
    if shared >= len(kinds):
        raise InvalidConfig(
            f"{fields.prefix}num_kv_shared_layers {shared:,} leaves none of {len(kinds)} layers to read from. Mend it."
        )
    return (*kinds[: len(kinds) - shared], *(SHARED,) * shared)


def _all_full(_: Fields, __: Dialect, layers: int) -> list[str]:
    return [FULL] * layers


def _all_windows(_: Fields, __: Dialect, layers: int) -> list[str]:
    return [SLIDING] * layers


def _alternating(fields: Fields, dialect: Dialect, layers: int) -> list[str]:
    """Windows, and full attention in every n-th layer."""
    letters = fields.get("sliding_window_pattern")
    if isinstance(letters, str) and set(letters) in ({"L"}, {"G"}, {"L", "G"}):  # "LLLG": local and global, repeated
        return [SLIDING if letters[i % len(letters)] == "L" else FULL for i in range(layers)]
    every = _every(fields, dialect, ("sliding_window_pattern", "_sliding_window_pattern"))
    return [SLIDING if (i + 1) % every else FULL for i in range(layers)]


def _interval(fields: Fields, dialect: Dialect, layers: int) -> list[str]:
    """A state, and full attention in every n-th layer."""
    every = _every(fields, dialect, ("full_attention_interval",))
    return [STATE if (i + 1) % every else FULL for i in range(layers)]


def _every(fields: Fields, dialect: Dialect, names: tuple[str, ...]) -> int:
    said = [one for name in names if (one := fields.optional_size(name))]
    return said[0] if said else dialect.every


def _after(fields: Fields, _: Dialect, layers: int) -> list[str]:
    """Qwen's windows: switched on by a field, in the layers after the first few."""
    on, first = fields.flag("use_sliding_window"), fields.whole("max_window_layers", 28)
    return [SLIDING if on and i >= first else FULL for i in range(layers)]


def _without_rotation(fields: Fields, _: Dialect, layers: int) -> list[str]:
    """SmolLM3's windows: switched on by a field, in the layers without rotated positions."""
    on, rotated = fields.flag("use_sliding_window"), _rotated(fields, layers)
    return [SLIDING if on and not one else FULL for one in rotated]


def _chunks(fields: Fields, _: Dialect, layers: int) -> list[str]:
    """Llama 4's chunks: in the layers with rotated positions."""
    return [CHUNKED if one else FULL for one in _rotated(fields, layers)]


def _rotated(fields: Fields, layers: int) -> list[bool]:
    every, listed = fields.optional_size("no_rope_layer_interval") or 4, fields.numbers("no_rope_layers")
    if listed and len(listed) != layers:
        raise InvalidConfig(f"{fields.prefix}no_rope_layers has {len(listed)} entries for {layers} layers.")
    return [bool(one) for one in listed] if listed else [(i + 1) % every != 0 for i in range(layers)]


def _period(fields: Fields, _: Dialect, layers: int) -> list[str]:
    """Jamba: attention once in a period, a state else."""
    period, offset = fields.optional_size("attn_layer_period") or 8, fields.whole("attn_layer_offset", 4)
    return [FULL if i % period == offset else STATE for i in range(layers)]


def _listed(fields: Fields, dialect: Dialect, layers: int) -> list[str]:
    """Attention where a list of layer numbers says, a state else; in every layer where the list is missing."""
    numbers = fields.numbers(dialect.list_field)
    if numbers is None:
        return [FULL if dialect.list_field == "full_attn_idxs" else STATE] * layers
    return [FULL if i in set(numbers) else STATE for i in range(layers)]


def _letters(fields: Fields, _: Dialect, layers: int) -> list[str]:
    pattern = fields.get("hybrid_override_pattern")
    if pattern is None:
        return [STATE, NOTHING, FULL, NOTHING] if layers == 4 else [NOTHING] * layers
    if not isinstance(pattern, str) or not set(pattern) <= LETTERS.keys() or len(pattern) != layers:
        raise InvalidConfig(
            f"{fields.prefix}hybrid_override_pattern must have one of {' '.join(LETTERS)} for each of {layers} layers."
        )
    return [LETTERS[letter] for letter in pattern]


def _kimi(fields: Fields, _: Dialect, layers: int) -> list[str]:
    """Kimi Linear lists its layers from 1 in a part of its own; every fourth one but the first without it."""
    part = Fields(fields.part("linear_attn_config"), {}, f"{fields.prefix}linear_attn_config.")
    numbers = part.numbers("full_attn_layers")
    if numbers is None or part.numbers("kda_layers") is None:
        return [FULL if i and i % 4 == 0 else STATE for i in range(layers)]
    return [FULL if i + 1 in set(numbers) else STATE for i in range(layers)]


def _alternate_states(_: Fields, __: Dialect, layers: int) -> list[str]:
    """MiniMax: a state and attention in turn."""
    return [FULL if i % 2 == 0 else STATE for i in range(layers)]


def _both(_: Fields, __: Dialect, layers: int) -> list[str]:
    return [BOTH] * layers


def _indexed(_: Fields, __: Dialect, layers: int) -> list[str]:
    return [INDEXED] * layers


RULES: MappingProxyType[str, Rule] = MappingProxyType(
    {
        "full": _all_full,
        "windows": _all_windows,
        "alternate": _alternating,
        "after": _after,
        "chunks": _chunks,
        "without rotation": _without_rotation,
        "interval": _interval,
        "period": _period,
        "listed": _listed,
        "letters": _letters,
        "kimi": _kimi,
        "alternate states": _alternate_states,
        "both": _both,
        "indexed": _indexed,
    }
)
