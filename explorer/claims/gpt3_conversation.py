"""One case followed through: does a GPT-3 conversation hold nine gigabytes, or fourteen?"""

from __future__ import annotations

from engine.costs.bytes import weight_bytes
from engine.costs.paging import sessions_that_fit
from explorer.claims.claim import GB, GIB, Claim, Number, See, Topic, fixed, shape
from explorer.claims.sources import ARITHMETIC, GPT3, PAGED

KV_MEMORY = See("kv-memory", {"model": "GPT-3 175B", "ctx": "4,096", "n": "8"})


def _third_vector(model: str, tokens: int, kv_bytes: int) -> tuple[Number, ...]:
    held = shape(model).kv_bytes(tokens, kv_bytes)
    return Number("key and value", held / GB, "GB"), Number("one of them twice", 1.5 * held / GB, "GB")


def _last_block(model: str, block: int, kv_bytes: int) -> tuple[Number, ...]:
    wasted = (block - 1) * shape(model).kv_bytes_per_token(kv_bytes)
    return (Number("wasted at worst, per sequence", wasted / 1e6, "MB"),)


def _longer(model: str, tokens: int, kv_bytes: int) -> tuple[Number, ...]:
    held = shape(model).kv_bytes(tokens, kv_bytes)
    return Number("per request", held / GB, "GB"), Number("per request", held / GIB, "GiB")


def _fifteen(model: str, tokens: int, kv_bytes: int, card: float, cards: int, sessions: int) -> tuple[Number, ...]:
    each, weights = shape(model).kv_bytes(tokens, kv_bytes), weight_bytes(shape(model), 2)
    per_token = shape(model).kv_bytes_per_token(kv_bytes)
    return (
        Number("fit on one card without any weights", card / each, "sessions"),
        Number("whole ones", sessions_that_fit(card, 0, tokens, per_token), "sessions"),
        Number(f"{sessions} of them need", sessions * each / GB, "GB"),
        Number(f"fit on {cards} cards beside the weights", sessions_that_fit(cards * card, weights, tokens, per_token),
               "sessions"),
    )  # fmt: skip


CLAIMS = (
    Claim(
        id="fourteen-not-nine", verdict="wrong", source=ARITHMETIC, see=KV_MEMORY,
        said="A full GPT-3 conversation really takes fourteen gigabytes, not nine.",
        because="You get fourteen only by counting three vectors per token. Key and value are two, and both are in "
        "the nine.",
        formula="2·L·d·b·S; 3·L·d·b·S", inputs=fixed(model="GPT-3 175B", tokens=2048, kv_bytes=2),
        compute=_third_vector,
    ),
    Claim(
        id="the-second-vector-twice", verdict="wrong", source=PAGED, see=KV_MEMORY,
        said="One of a token’s two cached vectors is stored twice.",
        because="There is one key and one value.",
        formula="tensors per layer",
        compute=lambda: (Number("vectors per token and layer", 2),),
    ),
    Claim(
        id="offsets-waste-a-page", verdict="wrong", source=PAGED, see=KV_MEMORY,
        said="Keys and values start at different offsets, so pages of the cache are wasted.",
        because="At most the rest of one block per sequence is wasted: megabytes, not five gigabytes. What did waste "
        "memory was reserving the maximum length.",
        formula="(block − 1)·kv", inputs=fixed(model="GPT-3 175B", block=16, kv_bytes=2), compute=_last_block,
    ),
    Claim(
        id="four-thousand-slots", verdict="conditional", source=GPT3, see=KV_MEMORY,
        said="Each GPT-3 request had 4,096 slots of cache.",
        because="That is twice the model’s context. It would be 19 GB, neither nine nor fourteen.",
        formula="2·L·d·b·S", inputs=fixed(model="GPT-3 175B", tokens=4096, kv_bytes=2), compute=_longer,
    ),
    Claim(
        id="fifteen-on-80-gb", verdict="wrong", source=ARITHMETIC, see=KV_MEMORY,
        said="Fifteen GPT-3 sessions of 4,096 tokens fit on an 80 GB card.",
        because="Four do, without any weights. On eight cards, beside the weights, it is fifteen, by the same "
        "arithmetic that gives nine.",
        formula="(memory − W) / (S·kv)",
        inputs=fixed(model="GPT-3 175B", tokens=4096, kv_bytes=2, card=80e9, cards=8, sessions=15), compute=_fifteen,
    ),
    Claim(
        id="the-allocator-says-fourteen", verdict="conditional", source=PAGED, see=KV_MEMORY,
        said="Arithmetic gives nine gigabytes, and the allocator takes fourteen.",
        because="That overhead is plausible, even mild: before paging, allocators took 2.6 to 4.9 times what was in "
        "use. But the reason given for it is wrong.",
        formula="14 / (2·L·d·b·S)", inputs=fixed(model="GPT-3 175B", tokens=2048, kv_bytes=2, said=14e9),
        compute=lambda model, tokens, kv_bytes, said: (
            Number("allocated over used", said / shape(model).kv_bytes(tokens, kv_bytes), "×"),
        ),
    ),
)  # fmt: skip

TOPIC = Topic("nine", "Nine gigabytes or fourteen", CLAIMS)
