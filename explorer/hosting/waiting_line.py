"""Who waits while the class is full, and whose turn it is.

First come, first served. Whoever has waited longest goes in when a place is free, also where others ask sooner.
Somebody who no longer asks (a browser that was put to sleep) must not hold up the rest, so is dropped after a while.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

SILENT_S = 120.0  # browsers slow a hidden tab down to one call a minute


@dataclass(frozen=True, slots=True)
class Waiting:
    """Where somebody stands: 1 is next."""

    place: int
    waiting: int


class WaitingLine:
    """The line in front of a full class."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()  # held for a moment only: a tab that closes takes it on Streamlit's event loop
        self._asked: dict[str, float] = {}  # in the order they came

    def ask(self, owner: str, free: int) -> Waiting | None:
        """May this one go in? None: yes, it is its turn. It stays in line until it has left it."""
        with self._lock:
            now = self._clock()
            self._asked[owner] = now  # a key that is there keeps its place
            self._asked = {one: asked for one, asked in self._asked.items() if now - asked < SILENT_S}
            ahead = list(self._asked).index(owner)
            return None if ahead < free else Waiting(ahead + 1, len(self._asked))

    def leave(self, owner: str) -> None:
        """This one went in, or away."""
        with self._lock:
            self._asked.pop(owner, None)

    def __len__(self) -> int:
        with self._lock:
            return len(self._asked)
