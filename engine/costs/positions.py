"""What the cache saves, counted: positions sent through the model, and query-key pairs, with it and without.

A prompt of P tokens and N new ones. The first new token comes from the prefill, so there are N - 1 steps after
it, and the last token drawn is never fed.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pairs:
    """Query-key pairs of one layer and head; square where a kernel computes the masked half as well."""

    uncached_square: int
    uncached_causal: int
    cached_square: int
    cached_causal: int


def uncached_positions(prompt_len: int, new_tokens: int) -> int:
    """Positions sent through the model when every step starts again: N·P + N(N-1)/2."""
    return new_tokens * prompt_len + new_tokens * (new_tokens - 1) // 2


def cached_positions(prompt_len: int, new_tokens: int) -> int:
    """The same with a cache: the prompt once, then one position a step."""
    return prompt_len + new_tokens - 1 if new_tokens else 0


def attention_pairs(prompt_len: int, new_tokens: int) -> Pairs:
    """Query-key pairs with and without a cache, the prefill counted in both."""
    p, n = prompt_len, new_tokens
    if n == 0:
        return Pairs(0, 0, 0, 0)
    squares = n * p * p + p * n * (n - 1) + (n - 1) * n * (2 * n - 1) // 6
    steps = (n - 1) * p + n * (n - 1) // 2  # each later query meets all tokens so far
    return Pairs(
        uncached_square=squares,
        uncached_causal=(squares + uncached_positions(p, n)) // 2,  # T(T+1)/2, summed
        cached_square=p * p + steps,
        cached_causal=p * (p + 1) // 2 + steps,
    )
