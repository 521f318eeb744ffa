"""How much of the engine's thread heavy work gets: what each owner had lately, and how long steps wait for it.

Heavy work is whatever is no decode step: prefills, studies, checks, looks that replay. While nobody steps it runs at
full speed. While somebody waits for a step, it stops at its next pause and has at most a share of the time. This file
knows names and times only.
"""

from __future__ import annotations

import math
from collections import OrderedDict

HALF_LIFE_MS = 30_000.0  # after which half of what an owner had is forgotten
LIGHT_MS = 2_000.0  # who had less of late is a light user: one prompt, a look or two
LIGHT_RATIO, HEAVY_RATIO = 1.0, 9.0  # time of steps that wait, over that of the heavy work which they wait for
REMEMBERED = 10_000  # owners


class SpentTime:
    """Engine time that each owner's heavy work took, in ms, fading."""

    def __init__(self) -> None:
        self._spent: OrderedDict[str, tuple[float, float]] = OrderedDict()  # owner -> ms, and as of when

    def add(self, owner: str, ms: float, now_ms: float) -> None:
        """This owner had so much."""
        self._spent[owner] = (self.of(owner, now_ms) + ms, now_ms)
        self._spent.move_to_end(owner)
        while len(self._spent) > REMEMBERED:
            self._spent.popitem(last=False)

    def of(self, owner: str, now_ms: float) -> float:
        """What is not forgotten yet of what this owner had."""
        ms, then_ms = self._spent.get(owner, (0.0, now_ms))
        return ms * math.pow(0.5, (now_ms - then_ms) / HALF_LIFE_MS)

    def is_light(self, owner: str, now_ms: float) -> bool:
        """Whether this owner had little of late."""
        return self.of(owner, now_ms) < LIGHT_MS


class Alternation:
    """Heavy work and steps in turn: an account of the time that steps may claim for what they waited.

    owed_ms  while it is above 0, steps that wait go first; below, heavy work may go on although somebody waits
    """

    def __init__(self) -> None:
        self.owed_ms = 0.0
        self._steps_ms = 0.0

    def worked(self, ms: float, *, is_light: bool) -> None:
        """A piece of heavy work took so long. What piled up while nobody stepped is forgotten."""
        self.owed_ms = min(self.owed_ms, self._steps_ms) + ms * (LIGHT_RATIO if is_light else HEAVY_RATIO)

    def stepped(self, ms: float) -> None:
        """Those who waited for steps had so long. Never more than that is left over for heavy work."""
        self._steps_ms = ms
        self.owed_ms = max(self.owed_ms - ms, -ms)
