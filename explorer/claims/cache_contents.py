"""Claims about what the cache holds, and why that may be kept."""

from __future__ import annotations

from explorer.claims.claim import Claim, Number, See, Topic, fixed, shape
from explorer.claims.sources import INVARIANCE, PAGED, RASCHKA, SCALING_BOOK


def _per_head(model: str, dtype_bytes: int) -> tuple[Number, ...]:
    one = shape(model)
    by_query_heads = 2 * one.num_layers * one.num_heads * one.head_dim * dtype_bytes
    return (
        Number("per token, by KV heads", one.kv_bytes_per_token(dtype_bytes), "B"),
        Number("per token, if every query head had its own", by_query_heads, "B"),
    )


def _queries(model: str, dtype_bytes: int) -> tuple[Number, ...]:
    one = shape(model)
    return (
        Number(
            "keeping queries would add, per token", one.num_layers * one.num_heads * one.head_dim * dtype_bytes, "B"
        ),
        Number("the cache of keys and values, per token", one.kv_bytes_per_token(dtype_bytes), "B"),
    )


CLAIMS = (
    Claim(
        id="kv-depend-on-the-token-alone", verdict="wrong", source=PAGED, measure="prefix",
        see=See("kv-memory", {"first": "Once"}),
        said="A token’s key and value depend on that token alone.",
        because="In the first layer, a key also depends on its position. In all layers above, the token’s state has "
        "taken in everything in front of it, so another first word gives other keys. Otherwise a cache could be "
        "reused after any beginning.",
        formula="k = W·h, and h of layer l depends on all tokens up to this one", inputs=fixed(model="Llama 3.1 8B"),
        compute=lambda model: (
            Number("layers where token and position decide", 1),
            Number("layers where everything in front counts", shape(model).num_layers - 1),
        ),
    ),
    Claim(
        id="later-tokens-change-nothing", verdict="conditional", source=SCALING_BOOK, measure="appended",
        see=See("kv-memory"),
        said="Later tokens do not change the keys and values of earlier ones.",
        because="True where a token sees only what is in front of it (causal attention). Position encodings that "
        "depend on the length of the whole text break this.",
        formula="d k(i) / d x(j) = 0 for j > i", compute=lambda: (Number("change", 0.0),),
    ),
    Claim(
        id="kv-fixed-for-good", verdict="conditional", source=INVARIANCE, measure="cached_uncached",
        said="Once computed, a key never changes.",
        because="As long as the beginning stays the same, and nothing is evicted or stored in fewer bits. The last "
        "bits are not fixed: computed again in another batch, they may differ.",
        formula="equal in exact arithmetic",
    ),
    Claim(
        id="kv-per-layer-and-head", verdict="conditional", source=SCALING_BOOK,
        see=See("kv-memory", {"model": "Llama 3.1 8B"}),
        said="For each token the cache has a key and a value per layer and head.",
        because="Per KV head, and there are often fewer of those than query heads. Latent attention keeps one small "
        "vector instead, a layer with a sliding window only its last tokens, and some layers of hybrid models nothing.",
        formula="2·L·G·h·b", inputs=fixed(model="Llama 3.1 8B", dtype_bytes=2), compute=_per_head,
    ),
    Claim(
        id="queries-are-not-cached", verdict="exact", source=RASCHKA, see=See("kv-memory"),
        said="Queries are not cached, because nothing reads them again.",
        because="A query is used in its own step only. In Llama 3.1 8B, with four query heads per KV head, keeping "
        "the queries would take twice as much memory as the cache itself.",
        formula="L·H·h·b, beside 2·L·G·h·b", inputs=fixed(model="Llama 3.1 8B", dtype_bytes=2), compute=_queries,
    ),
    Claim(
        id="third-token-three-keys", verdict="conditional", source=RASCHKA, see=See("step"),
        said="In “The cat sat”, the query of “sat” is compared with three keys.",
        because="Its own included. Four, where the tokenizer puts a start token in front.",
        formula="keys = position + 1", inputs=fixed(words=("The", " cat", " sat")),
        compute=lambda words: (Number("keys", len(words)), Number("with a start token", len(words) + 1)),
    ),
    Claim(
        id="cached-equals-uncached", verdict="exact", source=SCALING_BOOK, measure="cached_uncached",
        said="In exact arithmetic, a cache does not change the result.",
        because="Both compute the same sums. In floating point, these are added in another order and agree to "
        "rounding.",
        formula="f(ids) = f(last id, cache of the others)", see=See("without-cache", {"prompt": "The cat sat"}),
    ),
)  # fmt: skip

TOPIC = Topic("cache", "What the cache holds", CLAIMS)
