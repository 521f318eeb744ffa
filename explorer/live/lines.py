"""The lines that are open now: one for each browser tab, the newest, and so many for one network address."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from explorer.hosting.connections import is_elsewhere

MOST_OF_ONE_ADDRESS = 200  # a classroom shares one


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """One open line. `replace` ends it because its tab has opened a newer one."""

    owner: str
    address: str
    replace: Callable[[], None]


class Lines:
    """Open lines by the owner's secret."""

    def __init__(self) -> None:
        self._by_owner: dict[str, Line] = {}

    def has_room(self, address: str) -> bool:
        """Whether this address may have one more. This machine's own has no limit: a proxy may stand there."""
        if not is_elsewhere(address):
            return True
        return sum(line.address == address for line in self._by_owner.values()) < MOST_OF_ONE_ADDRESS

    def open(self, line: Line) -> None:
        """Take in a new line; the tab's older one ends."""
        before = self._by_owner.get(line.owner)
        self._by_owner[line.owner] = line
        if before is not None:
            before.replace()

    def close(self, line: Line) -> None:
        """This one is gone."""
        if self._by_owner.get(line.owner) is line:
            del self._by_owner[line.owner]

    def __len__(self) -> int:
        return len(self._by_owner)
