"""Three numbers for one cache that must agree or be explained: the formula, the live tensors, the process."""

from __future__ import annotations

from dataclasses import dataclass

from engine.costs.shape import ModelShape
from engine.records import MemoryUse
from explorer.say import words_beside

say = words_beside(__file__)


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
        Number(
            "formula",
            use.kv_formula_bytes,
            "computed",
            say("memory.formula", tokens=f"{tokens:,}", per_token=f"{per_token:,}"),
        ),
        Number(say("memory.live"), use.kv_live_bytes, "measured", say("memory.live_says")),
        Number(
            say("memory.reserved"),
            use.kv_reserved_bytes,
            "measured",
            say("memory.reserved_says", room=f"{room:,}"),
        ),
    ]
    if use.process_bytes is not None:
        found.append(Number("process", use.process_bytes, "measured", say("memory.process_says")))
    if use.device_allocated_bytes is not None:
        found.append(Number("device", use.device_allocated_bytes, "measured", say("memory.cuda_says")))
    return tuple(found)


def verdict(use: MemoryUse) -> str:
    """Whether formula and tensors agree, in words."""
    if use.kv_formula_bytes == use.kv_live_bytes:
        return say("memory.agree", kv_live_bytes=f"{use.kv_live_bytes:,}")
    more, less = sorted((use.kv_formula_bytes, use.kv_live_bytes), reverse=True)
    by = {"more": f"{more - less:,}", "times": f"{more / less:.3f}"}
    is_more = use.kv_live_bytes > use.kv_formula_bytes
    return say("memory.tensors_more", **by) if is_more else say("memory.formula_more", **by)


def window_words(shape: ModelShape, tokens: int, live: int, bytes_each: float) -> str:
    """What a window would save; empty where there is none, or where it is not full."""
    kept = shape.kv_bytes(tokens, bytes_each)
    if kept == shape.kv_bytes_per_token(bytes_each) * tokens:
        return ""
    short = [one for one in shape.cached_layers if one.window]
    sizes = " or ".join(f"{size:,}" for size in sorted({one.window or 0 for one in short}))
    layers = sum(one.layers for one in short)
    return say(
        "memory.windows", layers=layers, num_layers=shape.num_layers, sizes=sizes, kept=f"{kept:,}", live=f"{live:,}"
    )


def parts(use: MemoryUse, *, all_live: int, all_reserved: int, shared: int) -> tuple[Part, ...]:
    """What the process holds: what is known, and the rest.

    all_live, all_reserved  bytes of all sessions' caches; `shared` of prompts kept for others
    """
    known = use.weight_bytes + all_reserved + shared + use.capture_bytes
    found = (
        Part(say("memory.weights"), use.weight_bytes, say("memory.weights_says")),
        Part(say("memory.caches_live"), all_live, say("memory.caches_live_says")),
        Part(say("memory.caches_reserved"), all_reserved - all_live, say("memory.caches_reserved_says")),
        Part(say("memory.shared"), shared, say("memory.shared_says")),
        Part(say("memory.captures"), use.capture_bytes, say("memory.capture_says")),
    )
    if use.process_bytes is None:
        return found
    rest = Part(
        say("memory.rest"),
        use.process_bytes - known,
        say("memory.rest_says"),
    )
    return (*found, rest)
