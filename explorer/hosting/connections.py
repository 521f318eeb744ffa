"""The browser connections that are open now, and what is to be done once one of them is gone.

The gate opens and closes them; a page knows its own by a header that the gate adds. None of this is in Streamlit's
caches: those can be emptied, and then everybody would seem to be gone.
"""

from __future__ import annotations

import ipaddress
import secrets
import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

HEADER = "x-loupe-connection"


@dataclass(slots=True, eq=False)
class _Open:
    address: str
    kept: dict[Hashable, Callable[[], object]] = field(default_factory=dict)


class Connections:
    """Open connections by name. What is kept under a key is let go when the last connection that keeps it is gone."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[str, _Open] = {}
        self._is_watched = False

    def open(self, address: str) -> str:
        """A new connection from an address; returns its unguessable name."""
        name = secrets.token_urlsafe(16)
        with self._lock:
            self._is_watched = True
            self._open[name] = _Open(address)
        return name

    def close(self, name: str) -> None:
        """This one is gone. Called on the event loop: what was kept must be let go without waiting."""
        with self._lock:
            gone = self._open.pop(name, None)
            over = [work for key, work in gone.kept.items() if not self._is_kept(key)] if gone else []
        for work in over:
            work()

    def keep(self, name: str | None, key: Hashable, let_go: Callable[[], object]) -> None:
        """Call `let_go` when nobody keeps `key` any more; at once where the connection is gone already.

        name  None: a page without a connection. Without a gate (in a test) there is nobody to say that it is gone.
        """
        with self._lock:
            found = self._open.get(name) if name else None
            if found is not None:
                found.kept[key] = let_go
            is_over = found is None and self._is_watched and not self._is_kept(key)
        if is_over:
            let_go()

    def address(self, name: str | None) -> str:
        """Where a connection comes from; empty where that is not known."""
        with self._lock:
            found = self._open.get(name) if name else None
            return found.address if found else ""

    def __len__(self) -> int:
        with self._lock:
            return len(self._open)

    def _is_kept(self, key: Hashable) -> bool:
        return any(key in one.kept for one in self._open.values())


def is_elsewhere(address: str) -> bool:
    """Whether an address is another machine's: this one's own are a proxy that does not say for whom it asks."""
    try:
        return not ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


CONNECTIONS = Connections()
