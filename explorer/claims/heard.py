"""The ten claims one hears most, each with the number that decides it."""

from __future__ import annotations

from explorer.claims.catalogue import CLAIMS
from explorer.claims.claim import Claim, Number
from explorer.labs.charts import number_text
from explorer.labs.shell import escaped
from explorer.say import words_beside

say = words_beside(__file__)

# What a teacher is asked first: who picks the token, what the cache is for and what is in it, what a step waits for,
# whether a run can be repeated, what fits on a card, what speculation is worth.
HEARD = (
    "the-model-does-not-choose",
    "a-hundred-tokens-5050",
    "queries-are-not-cached",
    "kv-depend-on-the-token-alone",
    "linear-and-quadratic",
    "decode-is-memory-bound",
    "prefill-is-compute-bound",
    "a-70b-on-one-h100",
    "temperature-zero-not-repeatable",
    "two-to-three-times-faster",
)
PLACES = ("first", "second", "third", "fourth")


def heard() -> tuple[Claim, ...]:
    """The ten, in the order of the page."""
    by_id = {claim.id: claim for claim in CLAIMS}
    return tuple(by_id[name] for name in HEARD)


def deciding(claim: Claim) -> str:
    """The number that decides one of the ten, as Markdown: the numbers set off."""
    numbers = {place: f"**{escaped(short(number))}**" for place, number in zip(PLACES, claim.numbers, strict=False)}
    return say(f"heard.{claim.id}", **numbers)


def short(number: Number) -> str:
    """Three digits, a count in full: 128,256 logits; 262 kB; 50.5 ×."""
    if float(number.value).is_integer() and number.unit != "B":
        return f"{int(number.value):,} {number.unit}".strip()
    return number_text(number.value, number.unit)
