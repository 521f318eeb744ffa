"""Three numbers for one cache that must agree or be explained: the formula, the live tensors, the process."""

from __future__ import annotations

from dataclasses import dataclass

from engine.costs.shape import ModelShape
from engine.records import MemoryUse


@dataclass(frozen=True, slots=True)
class Number:
    """One of the numbers: its bytes, how they were come by, and what they include."""

    name: str
    size: int
    origin: str
    includes: str


@dataclass(frozen=True, slots=True)
class Part:
    """One part of what the process holds."""

    name: str
    size: int
    why: str


def numbers(use: MemoryUse, tokens: int, shape: ModelShape, bytes_each: float) -> tuple[Number, ...]:
    """The numbers for a session of `tokens` cached tokens, from the narrowest to the widest."""
    per_token = shape.kv_bytes_per_token(bytes_each)
    room = use.kv_reserved_bytes // per_token
    found = [
        Number("formula", use.kv_formula_bytes, "computed", f"{tokens:,} tokens × {per_token:,} B"),
        Number("live tensors", use.kv_live_bytes, "measured", "keys and values of all layers, tensor by tensor"),
        Number(
            "reserved tensors",
            use.kv_reserved_bytes,
            "measured",
            f"the same buffers whole: room for {room:,} tokens. They start at 64 and double when full, so that few "
            "steps copy the cache",
        ),
    ]
    if use.process_bytes is not None:
        found.append(
            Number(
                "process", use.process_bytes, "measured", "all that this program holds in memory, as the system counts"
            )
        )
    if use.device_allocated_bytes is not None:
        found.append(
            Number("device", use.device_allocated_bytes, "measured", "what PyTorch's CUDA allocator has allocated")
        )
    return tuple(found)


def verdict(use: MemoryUse) -> str:
    """Whether formula and tensors agree, in words."""
    if use.kv_formula_bytes == use.kv_live_bytes:
        return f"Formula and live tensors agree to the byte: {use.kv_live_bytes:,} B."
    more, less = sorted((use.kv_formula_bytes, use.kv_live_bytes), reverse=True)
    who = "The live tensors hold" if use.kv_live_bytes > use.kv_formula_bytes else "The formula counts"
    return (
        f"They do not agree: {who} {more - less:,} B more ({more / less:.3f} ×). A model whose code caches expanded "
        "keys and values does that; the formula counts what its config says is cached."
    )


def window_words(shape: ModelShape, tokens: int, live: int, bytes_each: float) -> str:
    """What a window would save; empty where there is none, or where it is not full."""
    kept = shape.kv_bytes(tokens, bytes_each)
    if kept == shape.kv_bytes_per_token(bytes_each) * tokens:
        return ""
    short = [one for one in shape.cached_layers if one.window]
    sizes = " or ".join(f"{size:,}" for size in sorted({one.window or 0 for one in short}))
    layers = sum(one.layers for one in short)
    return (
        f"{layers} of {shape.num_layers} layers only look back {sizes} tokens. A cache that "
        f"drops older keys there would hold {kept:,} B. This engine keeps all {live:,} B and lets the mask apply the "
        "window, so that every rewind can be done."
    )


def parts(use: MemoryUse, *, all_live: int, all_reserved: int, shared: int) -> tuple[Part, ...]:
    """What the process holds: what is known, and the rest.

    all_live, all_reserved  bytes of all sessions' caches; `shared` of prompts kept for others
    """
    known = use.weight_bytes + all_reserved + shared + use.capture_bytes
    found = (
        Part("weights", use.weight_bytes, "distinct storages of the model's parameters"),
        Part("caches, live", all_live, "keys and values of all sessions"),
        Part("caches, reserved", all_reserved - all_live, "room in the same buffers for tokens to come"),
        Part("shared prompts", shared, "prompts kept so that the next to open them need not prefill"),
        Part("captures", use.capture_bytes, "this session's queries and logits, kept so that steps can be looked at"),
    )
    if use.process_bytes is None:
        return found
    rest = Part(
        "the rest",
        use.process_bytes - known,
        "Python, torch and its libraries, a forward pass's own results, the page, and freed memory that the "
        "C library has not given back",
    )
    return (*found, rest)
