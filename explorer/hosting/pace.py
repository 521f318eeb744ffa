"""How fast one tab may step: a burst at once, then a steady rate.

The page's play loop keeps to the rate by itself. This is the guard for what does not: a hand on the space bar,
or a program that speaks the page's language. Nothing is refused, it only waits.
"""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

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


class Alarm:
    """Futures that resolve after a while: one thread for all, started with the first."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: list[tuple[float, int, Future[None]]] = []
        self._numbers = itertools.count()  # two of the same moment: futures have no order
        self._thread: threading.Thread | None = None

    def after(self, seconds: float) -> Future[None]:
        """A Future that resolves in so many seconds."""
        future: Future[None] = Future()
        with self._changed:
            heapq.heappush(self._waiting, (time.monotonic() + seconds, next(self._numbers), future))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="loupe-alarm", daemon=True)
                self._thread.start()
            self._changed.notify()
        return future

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting:
                    self._changed.wait()
                left = self._waiting[0][0] - time.monotonic()
                if left > 0:
                    self._changed.wait(left)
                    continue
                future = heapq.heappop(self._waiting)[2]
            future.set_result(None)


ALARM = Alarm()
