"""How often somebody may try a secret: a few times at once, then now and then, counted by address.

A class behind one address shares the count: whoever tries there keeps the others waiting for seconds, not out.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

log = logging.getLogger(__name__)

AT_ONCE = 8
EVERY_S = 10.0
REMEMBERED = 10_000  # addresses


class Attempts:
    """Wrong ones by address.

    what  is tried, for the log
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        *,
        what: str = "host key",
        at_once: int = AT_ONCE,
        every_s: float = EVERY_S,
    ) -> None:
        self._clock = clock
        self._what, self._at_once, self._every_s = what, at_once, every_s
        self._lock = threading.Lock()
        self._due: OrderedDict[str, float] = OrderedDict()  # when all attempts so far are forgotten

    def wait_s(self, address: str) -> float:
        """Seconds until this address may try again; 0: now."""
        with self._lock:
            return max(0.0, self._due.get(address, 0.0) - self._clock() - (self._at_once - 1) * self._every_s)

    def failed(self, address: str) -> None:
        """A wrong one came from there."""
        log.warning("a wrong %s came from %s", self._what, address or "an unknown address")
        with self._lock:
            self._due[address] = max(self._due.get(address, 0.0), self._clock()) + self._every_s
            self._due.move_to_end(address)
            while len(self._due) > REMEMBERED:
                self._due.popitem(last=False)
