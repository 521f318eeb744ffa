"""How often somebody may try the host's key: a few times at once, then now and then, counted by address.

A class behind one address shares the count: whoever tries keys there keeps its host waiting for seconds, not out.
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
    """Wrong keys by address."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._due: OrderedDict[str, float] = OrderedDict()  # when all attempts so far are forgotten

    def wait_s(self, address: str) -> float:
        """Seconds until this address may try again; 0: now."""
        with self._lock:
            return max(0.0, self._due.get(address, 0.0) - self._clock() - (AT_ONCE - 1) * EVERY_S)

    def failed(self, address: str) -> None:
        """A wrong key came from there."""
        log.warning("a wrong host key came from %s", address or "an unknown address")
        with self._lock:
            self._due[address] = max(self._due.get(address, 0.0), self._clock()) + EVERY_S
            self._due.move_to_end(address)
            while len(self._due) > REMEMBERED:
                self._due.popitem(last=False)
