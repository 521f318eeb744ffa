"""How much one connection may say: so much at once, then so much a second."""

from __future__ import annotations

import time
from collections.abc import Callable


class Allowance:
    """So much at once, then so much a second. Nothing is refused, it only waits."""

    def __init__(self, a_second: float, at_once: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._a_second, self._at_once, self._clock = a_second, at_once, clock
        self._left, self._then = at_once, clock()

    def wait_s(self, amount: float) -> float:
        """Take so much; seconds until there was enough of it."""
        now = self._clock()
        self._left = min(self._at_once, self._left + (now - self._then) * self._a_second) - amount
        self._then = now
        return max(0.0, -self._left / self._a_second)
