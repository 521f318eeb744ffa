"""Who leads now, by code; and the end of a lead whose leader does not come back."""

from __future__ import annotations

import time
from collections.abc import Callable

from explorer.following.code import new_code, typed_code
from explorer.following.leading import Leading
from explorer.live.tab import Tab

GONE_FOR_S = 600.0
MOST = 200  # leads of one server

ENDED_BY_LEADER = "The leader has ended this."
LEADER_GONE = "The leader has been gone for ten minutes, so this has ended."


class Leads:
    """The leads of one server."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._by_code: dict[str, Leading] = {}

    def begin(self, tab: Tab) -> Leading | None:
        """Let a tab lead; one that leads already goes on. None where too many lead."""
        leading = self.of(tab)
        if leading is not None or len(self._by_code) >= MOST:
            return leading
        leading = Leading(new_code(), tab, self._clock)
        self._by_code[leading.code] = tab.lead = leading
        return leading

    def of(self, tab: Tab) -> Leading | None:
        """The lead of a tab."""
        return next((one for one in self._by_code.values() if one.tab is tab), None)

    def find(self, code: str) -> Leading | None:
        """The lead of this code."""
        return self._by_code.get(typed_code(code))

    def end(self, tab: Tab, why: str = ENDED_BY_LEADER) -> None:
        """A tab leads no more."""
        leading = self.of(tab)
        if leading is not None:
            del self._by_code[leading.code]
            tab.lead = None
            leading.end(why)

    def reap(self) -> None:
        """End what was left ten minutes ago, or has lost its tab."""
        now = self._clock()
        for leading in list(self._by_code.values()):
            gone_s = 0.0 if leading.gone_since is None else now - leading.gone_since
            if gone_s >= GONE_FOR_S or leading.tab.is_closed:
                self.end(leading.tab, LEADER_GONE)
