"""Claims about what decoding costs without a cache."""

from __future__ import annotations

from engine.costs.flops import decode_flops, prefill_flops
from engine.costs.positions import attention_pairs, cached_positions, uncached_positions
from explorer.claims.claim import Claim, Number, See, Topic, fixed, shape
from explorer.claims.sources import ARITHMETIC, SCALING_BOOK

RACE = See("without-cache", {"prompt": "The cat sat", "n": "100"})  # both loops, live


def _positions(prompt: int, new_tokens: int) -> tuple[Number, ...]:
    without, cached = uncached_positions(prompt, new_tokens), cached_positions(prompt, new_tokens)
    return (
        Number("without a cache", without, "positions"),
        Number("with one", cached, "positions"),
        Number("ratio", without / cached, "×"),
    )


def _doubling(prompt: int, new_tokens: int, *, cached: bool) -> tuple[Number, ...]:
    count = cached_positions if cached else uncached_positions
    field = "cached_causal" if cached else "uncached_causal"
    once, twice = (attention_pairs(prompt, n) for n in (new_tokens, 2 * new_tokens))
    return (
        Number("twice the tokens, positions", count(prompt, 2 * new_tokens) / count(prompt, new_tokens), "×"),
        Number("twice the tokens, attention pairs", getattr(twice, field) / getattr(once, field), "×"),
    )


def _attention_saved(prompt: int, new_tokens: int) -> tuple[Number, ...]:
    pairs = attention_pairs(prompt, new_tokens)
    first = prompt * prompt  # the prefill's squares, the same with a cache and without
    return (
        Number("full squares", pairs.uncached_square / pairs.cached_square, "×"),
        Number("the causal half alone", pairs.uncached_causal / pairs.cached_causal, "×"),
        Number("prefill left out", (pairs.uncached_square - first) / (pairs.cached_square - first), "×"),
    )


def _flops_saved(model: str, prompt: int, new_tokens: int) -> tuple[Number, ...]:
    one = shape(model)
    without = sum(prefill_flops(one, prompt + t) for t in range(new_tokens))
    cached = prefill_flops(one, prompt) + sum(decode_flops(one, prompt + t) for t in range(1, new_tokens))
    return (Number("arithmetic without a cache, over with one", without / cached, "×"),)


CLAIMS = (
    Claim(
        id="n-times-n-plus-one-over-two", verdict="conditional", source=ARITHMETIC, see=RACE,
        said="Without a cache, N tokens cost N(N+1)/2 positions.",
        because="For a prompt of one token. For P tokens it is N·P + N(N−1)/2, against P + N − 1 with a cache.",
        formula="N·P + N(N−1)/2; P + N − 1", inputs=fixed(prompt=1, new_tokens=200), compute=_positions,
    ),
    Claim(
        id="a-hundred-tokens-5050", verdict="exact", source=ARITHMETIC, measure="count_100",
        see=See("without-cache", {"prompt": "The", "n": "100", "count": "positions"}),
        said="Without a KV cache, 100 tokens take 5,050 positions.",
        because="Starting from a prompt of one token. With a cache it is 100.",
        formula="N·P + N(N−1)/2", inputs=fixed(prompt=1, new_tokens=100), compute=_positions,
    ),
    Claim(
        id="eight-million-positions", verdict="exact", source=ARITHMETIC, see=RACE,
        said="Without a cache, 4,096 tokens take more than eight million positions.",
        because="And 4,096 with a cache: two thousand times fewer.",
        formula="N·P + N(N−1)/2", inputs=fixed(prompt=1, new_tokens=4096), compute=_positions,
    ),
    Claim(
        id="quadratic-and-cubic", verdict="exact", source=SCALING_BOOK, see=RACE,
        said="Without a cache, the linear layers grow with the square of the answer and attention with its cube.",
        because="Twice the answer means nearly four times and nearly eight times as much.",
        formula="sum of (P + t); sum of (P + t)(P + t + 1) / 2", inputs=fixed(prompt=1, new_tokens=1000),
        compute=lambda prompt, new_tokens: _doubling(prompt, new_tokens, cached=False),
    ),
    Claim(
        id="linear-and-quadratic", verdict="exact", source=SCALING_BOOK, see=RACE,
        said="With a cache, the linear layers grow with the answer, and attention with its square.",
        because="Twice the answer means twice and nearly four times as much.",
        formula="P + N − 1; P(P+1)/2 + sum of (P + t)", inputs=fixed(prompt=1, new_tokens=1000),
        compute=lambda prompt, new_tokens: _doubling(prompt, new_tokens, cached=True),
    ),
    Claim(
        id="five-hundred-times-less-attention", verdict="conditional", source=ARITHMETIC, see=RACE,
        said="With 2,000 tokens of prompt and 500 of answer, a cache makes attention 500 times cheaper.",
        because="If full squares are counted, and the prefill with them. Counting the causal half gives 407, leaving "
        "the prefill out gives 2,259.",
        formula="query-key pairs without over with", inputs=fixed(prompt=2000, new_tokens=500),
        compute=_attention_saved,
    ),
    Claim(
        id="no-arithmetic-is-saved", verdict="wrong", source=ARITHMETIC, see=RACE,
        said="A cache saves no arithmetic; it only trades it for memory.",
        because="It saves nearly all of it, and takes memory in exchange.",
        formula="2·N·positions + 4·L·H·h·pairs, without over with",
        inputs=fixed(model="Llama 3.1 8B", prompt=2000, new_tokens=500), compute=_flops_saved,
    ),
)  # fmt: skip

TOPIC = Topic("uncached", "What the cache saves", CLAIMS)
