"""All claims, by topic, in the order of the page."""

from __future__ import annotations

from explorer.claims import (
    cache_contents,
    cache_size,
    decode_loop,
    flash_attention,
    gpt3_conversation,
    intensity,
    lower_bound,
    prefill_decode,
    sampling,
    speculation,
    without_cache,
)
from explorer.claims.claim import Claim, Topic

TOPICS: tuple[Topic, ...] = (
    decode_loop.TOPIC,
    prefill_decode.TOPIC,
    cache_contents.TOPIC,
    without_cache.TOPIC,
    cache_size.TOPIC,
    lower_bound.TOPIC,
    intensity.TOPIC,
    flash_attention.TOPIC,
    *sampling.TOPICS,
    speculation.TOPIC,
    gpt3_conversation.TOPIC,
)
CLAIMS: tuple[Claim, ...] = tuple(claim for topic in TOPICS for claim in topic.claims)
