"""All claims, by topic, in the order of the page."""

from __future__ import annotations

from explorer.claims import (
    cache_size,
    drawing,
    in_tiles,
    intensity,
    nine_or_fourteen,
    prefill_decode,
    speculation,
    the_cache,
    the_floor,
    the_loop,
    without_cache,
)
from explorer.claims.claim import Claim, Topic

TOPICS: tuple[Topic, ...] = (
    the_loop.TOPIC,
    prefill_decode.TOPIC,
    the_cache.TOPIC,
    without_cache.TOPIC,
    cache_size.TOPIC,
    the_floor.TOPIC,
    intensity.TOPIC,
    in_tiles.TOPIC,
    *drawing.TOPICS,
    speculation.TOPIC,
    nine_or_fourteen.TOPIC,
)
CLAIMS: tuple[Claim, ...] = tuple(claim for topic in TOPICS for claim in topic.claims)
