"""How fast one tab may step: a burst at once, then a steady rate.

The page's play loop keeps to the rate by itself. This is the guard for what does not: a hand on the space bar,
or a program that speaks the page's language. Nothing is refused, it only waits.
"""

from __future__ import annotations

import time
from collections.abc import Callable

BURST = 8  # steps: somebody who clicks ahead a little is not slowed down


class Pace:
    """Says how long the next step must wait."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate  # per second; 0: no limit
        self._clock = clock
        self._due = 0.0  # when the next step would run if all kept to the rate from the start

    def wait_s(self) -> float:
        """Take the next place; seconds until its time has come."""
        if not self._rate:
            return 0.0
        now = self._clock()
        due = max(self._due, now - (BURST - 1) / self._rate)
        self._due = due + 1 / self._rate
        return max(0.0, due - now)
