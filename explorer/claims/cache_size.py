"""Claims about how large the cache is."""

from __future__ import annotations

from engine.costs.bytes import weight_bytes
from engine.costs.paging import paged, reserved_waste
from explorer.claims.claim import GB, GIB, KIB, Claim, Number, See, Topic, fixed, shape
from explorer.claims.sources import ARITHMETIC, GPT3, PAGED, SCALING_BOOK


def _library(model: str, context: int, count: int = 1) -> See:
    """The cache calculator at these sizes."""
    return See("kv-memory", {"model": model, "ctx": f"{context:,}", "n": str(count)})


PER_TOKEN = "2·L·G·h·b"


def _per_token(model: str, kv_bytes: int) -> tuple[Number, ...]:
    each = shape(model).kv_bytes_per_token(kv_bytes)
    return Number("per token", each, "B"), Number("per token", each / KIB, "KiB")


def _sequences(model: str, tokens: tuple[int, ...], kv_bytes: int) -> tuple[Number, ...]:
    found = []
    for count in tokens:
        held = shape(model).kv_bytes(count, kv_bytes)
        found += [Number(f"{count:,} tokens", held / GIB, "GiB"), Number(f"{count:,} tokens", held / GB, "GB")]
    return tuple(found)


def _factors(model: str, kv_bytes: int) -> tuple[Number, ...]:
    one = shape(model)
    return (
        Number("layers", one.num_layers),
        Number("vectors", 2),
        Number("numbers in each", one.num_kv_heads * one.head_dim),
        Number("per token", one.kv_bytes_per_token(kv_bytes), "B"),
    )


def _sequences_over_weights(model: str, sequences: int, tokens: int, dtype_bytes: int) -> tuple[Number, ...]:
    cache = sequences * shape(model).kv_bytes(tokens, dtype_bytes)
    weights = weight_bytes(shape(model), dtype_bytes)
    return (
        Number("caches", cache / GB, "GB"),
        Number("weights", weights / GB, "GB"),
        Number("ratio", cache / weights, "×"),
    )


def _latent(model: str, tokens: tuple[int, ...], kv_bytes: int) -> tuple[Number, ...]:
    one = shape(model)
    assert one.latent is not None
    expanded = one.num_heads * (one.latent.nope + one.latent.rope + one.latent.value)  # a key and a value per head
    return (
        Number("per token", one.kv_bytes_per_token(kv_bytes), "B"),
        *(Number(f"{count:,} tokens", one.kv_bytes(count, kv_bytes) / GIB, "GiB") for count in tokens),
        Number("keys and values of all heads would take", expanded / one.latent.cached_width, "×"),
    )


def _size_against_cache(
    large: str, tokens: int, others: tuple[str, ...], other_tokens: tuple[int, ...], kv_bytes: int
) -> tuple[Number, ...]:
    found = []
    for name, length in zip(others, other_tokens, strict=True):
        size = shape(large).parameters.total / shape(name).parameters.total
        cache = shape(large).kv_bytes(tokens, kv_bytes) / shape(name).kv_bytes(length, kv_bytes)
        found += [
            Number(f"parameters, over {name}", size, "×"),
            Number(f"cache, over {name} at {length:,}", cache, "×"),
        ]
    per_token = shape(others[0]).kv_bytes_per_token(kv_bytes) / shape(large).kv_bytes_per_token(kv_bytes)
    return (*found, Number(f"per token, {others[0]} over it", per_token, "×"))


def _what_each_saves(model: str, used: int, most: int, block: int) -> tuple[Number, ...]:
    one = shape(model)
    return (
        Number(
            "shared KV heads: bytes per token over one KV head per query head", one.num_kv_heads / one.num_heads, "×"
        ),
        Number("8-bit cache: bytes per token over 16-bit", 1 / 2, "×"),
        Number(f"{most:,} slots reserved for {used:,} tokens, in use", 1 - reserved_waste(used, most)),
        Number(f"blocks of {block}, in use", paged(used, block).utilisation),
    )


CLAIMS = (
    Claim(
        id="gpt3-nine-gigabytes", verdict="rounded", source=GPT3, see=_library("GPT-3 175B", 2048),
        said="A GPT-3 conversation of full length takes nine gigabytes of keys and values.",
        because="Exactly nine in GiB; 9.66 in GB.",
        formula=f"{PER_TOKEN}·S",
        inputs=fixed(model="GPT-3 175B", tokens=(2048,), kv_bytes=2), compute=_sequences,
    ),
    Claim(
        id="gpt3-the-factors", verdict="exact", source=GPT3, see=_library("GPT-3 175B", 2048),
        said="GPT-3’s cache has two vectors of 12,288 numbers in each of 96 layers, at two bytes a number.",
        because="That is 4.5 MiB per token.",
        formula=PER_TOKEN, inputs=fixed(model="GPT-3 175B", kv_bytes=2),
        compute=_factors,
    ),
    Claim(
        id="gpt3-per-conversation", verdict="conditional", source=PAGED, see=_library("GPT-3 175B", 2048),
        said="Every GPT-3 conversation takes nine gigabytes.",
        because="Only at full length. A shorter one takes less, unless its allocator reserves the whole length in "
        "advance.",
        formula=f"{PER_TOKEN}·S", inputs=fixed(model="GPT-3 175B", tokens=(500, 2048), kv_bytes=2), compute=_sequences,
    ),
    Claim(
        id="llama2-13b-8192", verdict="rounded", source=SCALING_BOOK, see=_library("Llama 2 13B", 8192),
        said="8,192 tokens of Llama 2 13B in bf16 are 6.7 GB.",
        because="6.71 GB, or 6.25 GiB. The model itself was trained on 4,096 positions.",
        formula=f"{PER_TOKEN}·S",
        inputs=fixed(model="Llama 2 13B", tokens=(8192,), kv_bytes=2), compute=_sequences,
    ),
    Claim(
        id="four-caches-outweigh-the-model", verdict="exact", source=SCALING_BOOK, see=_library("Llama 2 13B", 8192),
        said="Four sequences of 8,192 tokens outweigh the weights of Llama 2 13B.",
        because="By three percent.",
        formula="4·S·kv over N·b",
        inputs=fixed(model="Llama 2 13B", sequences=4, tokens=8192, dtype_bytes=2), compute=_sequences_over_weights,
    ),
    Claim(
        id="llama31-8b-per-token", verdict="exact", source=ARITHMETIC, see=_library("Llama 3.1 8B", 32_768),
        said="A token of Llama 3.1 8B costs 128 KiB of cache.",
        because="With its eight KV heads, at two bytes a number.",
        formula=PER_TOKEN, inputs=fixed(model="Llama 3.1 8B", kv_bytes=2), compute=_per_token,
    ),
    Claim(
        id="llama31-8b-at-32k", verdict="conditional", source=ARITHMETIC, see=_library("Llama 3.1 8B", 32_768),
        said="A 32K context of Llama 3.1 8B takes 3.9 GiB.",
        because="If 32K is 32,000. At 32,768 it is 4 GiB.",
        formula=f"{PER_TOKEN}·S", inputs=fixed(model="Llama 3.1 8B", tokens=(32_000, 32_768), kv_bytes=2),
        compute=_sequences,
    ),
    Claim(
        id="llama31-70b-per-token", verdict="exact", source=ARITHMETIC, see=_library("Llama 3.1 70B", 32_768),
        said="A token of Llama 3.1 70B costs 320 KiB.",
        because="It has 80 layers, and as many KV heads as the 8B model.",
        formula=PER_TOKEN, inputs=fixed(model="Llama 3.1 70B", kv_bytes=2), compute=_per_token,
    ),
    Claim(
        id="deepseek-v3-671b", verdict="conditional", source=ARITHMETIC, see=_library("DeepSeek-V3", 32_768),
        said="DeepSeek-V3 has 671 billion parameters.",
        because="Without its multi-token prediction module. A token goes through 37.6 billion of them.",
        formula="sum over layers",
        inputs=fixed(model="DeepSeek-V3"),
        compute=lambda model: (
            Number("held", shape(model).parameters.total / 1e9, "billion"),
            Number("used by a token", shape(model).parameters.active / 1e9, "billion"),
        ),
    ),
    Claim(
        id="deepseek-v3-at-32k", verdict="rounded", source=ARITHMETIC, see=_library("DeepSeek-V3", 32_768),
        said="With latent attention, 32K of DeepSeek-V3 fit in 2.1 GiB.",
        because="For either meaning of 32K. Uncompressed, the keys and values of all its heads would take 71 times as "
        "much.",
        formula="L·(r + d_rope)·b·S", inputs=fixed(model="DeepSeek-V3", tokens=(32_000, 32_768), kv_bytes=2),
        compute=_latent,
    ),
    Claim(
        id="four-times-the-model-a-quarter-of-the-cache", verdict="conditional", source=ARITHMETIC,
        see=_library("DeepSeek-V3", 32_768),
        said="DeepSeek-V3 is four times as large as earlier models, with a cache a quarter as large.",
        because="Compared with GPT-3, and then 32,000 tokens are compared with 2,048. Per token, GPT-3 needs 67 times "
        "as much. Compared with Llama 3.1 70B, it is nine and a half times the size with a fifth of the cache.",
        formula="N over N; S·kv over S·kv",
        inputs=fixed(large="DeepSeek-V3", tokens=32_000, others=("GPT-3 175B", "Llama 3.1 70B", "Llama 3.1 405B"),
                     other_tokens=(2048, 32_000, 32_000), kv_bytes=2),
        compute=_size_against_cache,
    ),
    Claim(
        id="why-gqa-mla-paging", verdict="conditional", source=PAGED, see=_library("Llama 3.1 8B", 2048),
        said="The size of the cache is the reason for grouped-query attention, latent attention, paging and small "
        "number formats.",
        because="Three of them take fewer bytes per token. Paging does not: it wastes less memory around the tokens.",
        formula="G / H; b / 2; used / reserved; used / blocks",
        inputs=fixed(model="Llama 3.1 8B", used=500, most=2048, block=16), compute=_what_each_saves,
    ),
)  # fmt: skip

TOPIC = Topic("size", "How large the cache is", CLAIMS)
