"""Three ways to hand out a cache to sequences whose length nobody knows beforehand, and what each wastes.

Slots are places for one token: its keys and values in all layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from engine.costs.paging import paged, power_of_two_slots
from engine.errors import InvalidSettings
from explorer.say import words_beside

say = words_beside(__file__)

Policy = Literal["reserve to the maximum", "power of two", "paged"]
POLICIES: tuple[Policy, ...] = ("reserve to the maximum", "power of two", "paged")
MOST_SESSIONS = 100
MOST_TOKENS = 1_048_576


@dataclass(frozen=True, slots=True)
class Allocation:
    """What each of the sequences gets under one policy: slots, as many as `lengths` or more."""

    policy: Policy
    lengths: tuple[int, ...]
    slots: tuple[int, ...]

    @property
    def held(self) -> int:
        """Slots handed out."""
        return sum(self.slots)

    @property
    def wasted(self) -> int:
        """Slots handed out that hold no token."""
        return self.held - sum(self.lengths)

    @property
    def utilisation(self) -> float:
        """Share of the slots that holds a token."""
        return sum(self.lengths) / self.held if self.held else 1.0


def allocate(policy: Policy, lengths: Sequence[int], *, most: int, block: int) -> Allocation:
    """Hand out slots. `most` is the length that is reserved; a sequence beyond it could not have come about."""
    over = [length for length in lengths if length > most]
    if policy == "reserve to the maximum" and over:
        raise InvalidSettings(say("allocation.too_long", over=f"{max(over):,}", most=f"{most:,}"))
    return Allocation(policy, tuple(lengths), tuple(_slots(policy, length, most, block) for length in lengths))


def _slots(policy: Policy, length: int, most: int, block: int) -> int:
    if policy == "reserve to the maximum":
        return most
    return power_of_two_slots(length) if policy == "power of two" else paged(length, block).blocks * block


def read_lengths(words: str) -> tuple[int, ...]:
    """Lengths as somebody types them: whole numbers with commas or spaces between. Raises InvalidSettings."""
    parts = words.replace(",", " ").replace(";", " ").split()
    if not parts:
        raise InvalidSettings(say("allocation.no_lengths"))
    wrong = [part for part in parts if not (part.isascii() and part.isdigit() and 1 <= int(part[:9]) <= MOST_TOKENS)]
    if wrong:
        raise InvalidSettings(say("allocation.bad_length", most=f"{MOST_TOKENS:,}", length=f"{wrong[0][:20]!r}"))
    if len(parts) > MOST_SESSIONS:
        raise InvalidSettings(say("allocation.too_many", most_sessions=MOST_SESSIONS, parts=len(parts)))
    return tuple(int(part) for part in parts)


def block_owners(lengths: Sequence[int], block: int) -> tuple[int, ...]:
    """Which sequence each block of the pool belongs to, when all grow a token at a time and take the next free one."""
    owners: list[int] = []
    for start in range(0, max(lengths, default=0), block):
        owners += [one for one, length in enumerate(lengths) if length > start]
    return tuple(owners)
