"""Who runs next: in every turn some sessions share a forward, one may step alone, then others get their work done.

Decode comes first, one token per waiting session, because a person waits for it; then what is brief (a look at a
step, a change of settings), because the same person's next step waits behind it; heavy work (a prefill, a study) is
cut into pieces that go in between, and whoever had the least of it lately goes first. There is no timer window: what
arrived during the last turn is in the next one. This file knows names and numbers only, no tensor and no thread.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

PATIENCE = 8  # turns that autoplay lets clicks pass; from then on it counts as a click, so no wait is without bound
REMEMBERED = 10_000  # sessions whose last turn is known; one that is forgotten counts as never served

Kind = Literal["step", "brief", "work", "look"]


@dataclass(frozen=True, slots=True)
class Waiting:
    """What the oldest request of one session asks for.

    kind      "step" is one token, "brief" something that is done at once, "work" a piece of something longer, "look"
              the same of a study or a check, of which one runs at a time
    auto      autoplay asks, nobody is waiting at a button
    solo      steps alone: a forward of one row repeats bit for bit, a row of many need not
    spent_ms  heavy work that its owner had lately
    is_begun  a look that is under way
    """

    key: str
    kind: Kind
    auto: bool = False
    solo: bool = False
    spent_ms: float = 0.0
    is_begun: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """One round.

    batches      the sessions of each forward
    brief, work  who gets a piece done, in this order, while time is left
    """

    batches: tuple[tuple[str, ...], ...]
    brief: tuple[str, ...]
    work: tuple[str, ...]


class Scheduler:
    """Clicks before autoplay, light users before heavy ones, and among equals whoever was served longest ago."""

    def __init__(self, max_batch: int) -> None:
        self.max_batch = max_batch
        self._clock = 0
        self._last_served: OrderedDict[str, int] = OrderedDict()
        self._passed_over: dict[str, int] = {}

    def plan(self, waiting: Sequence[Waiting]) -> Turn:
        """The next turn. Its steps count as served; call `served` for each piece of work that was really done."""
        self._clock += 1
        steps = sorted((w for w in waiting if w.kind == "step"), key=self._urgency)
        shared = tuple(w.key for w in steps if not w.solo)[: self.max_batch]
        # One a turn: those who step alone wait for each other, and the class never waits for more than one of them.
        alone = tuple(w.key for w in steps if w.solo)[:1]
        brief = sorted((w.key for w in waiting if w.kind == "brief"), key=self._age)
        self._passed_over = {
            w.key: self._passed_over.get(w.key, 0) + 1 for w in steps if w.key not in (*shared, *alone)
        }
        self.served((*shared, *alone))
        return Turn(tuple(batch for batch in (shared, alone) if batch), tuple(brief), self._heavy(waiting))

    def served(self, keys: Iterable[str]) -> None:
        """These sessions had their turn now."""
        for key in keys:
            self._last_served[key] = self._clock
            self._last_served.move_to_end(key)
        while len(self._last_served) > REMEMBERED:
            self._last_served.popitem(last=False)

    def _heavy(self, waiting: Sequence[Waiting]) -> tuple[str, ...]:
        """All work, and of the looks the one that is under way, or else the first in line."""
        work = [w for w in waiting if w.kind == "work"]
        looks = [w for w in waiting if w.kind == "look"]
        place = [w for w in looks if w.is_begun] or sorted(looks, key=self._weight)[:1]
        return tuple(w.key for w in sorted((*work, *place), key=self._weight))

    def _weight(self, waiting: Waiting) -> tuple[float, bool, int]:
        return waiting.spent_ms, waiting.kind == "look", self._age(waiting.key)

    def _urgency(self, waiting: Waiting) -> tuple[bool, int]:
        gives_way = waiting.auto and self._passed_over.get(waiting.key, 0) < PATIENCE
        return gives_way, self._age(waiting.key)

    def _age(self, key: str) -> int:
        return self._last_served.get(key, 0)
