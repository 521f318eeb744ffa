"""Open files and sockets: how many this process may have, against how many a class needs.

A tab takes four, and three of them for two minutes after it has left. Where they run out nobody can connect any more.
"""

from __future__ import annotations

import logging
import sys

log = logging.getLogger(__name__)

PER_TAB = 8
BESIDE_TABS = 512  # weights, logs, requests for scripts and styles
WANTED = 65_536


def raise_limit(tabs: int) -> None:
    """As high as this system lets us, and a line in the log where that is too low for so many tabs (0: at home)."""
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED if hard == resource.RLIM_INFINITY else min(WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    needed = BESIDE_TABS + PER_TAB * tabs
    if soft != resource.RLIM_INFINITY and soft < needed:
        room = max(0, (soft - BESIDE_TABS) // PER_TAB)
        log.warning(
            "This process may open %d files and sockets; %d tabs need %d, and there is room for %d. Raise the limit: "
            "LimitNOFILE in systemd, --ulimit nofile for a container.",
            soft,
            tabs,
            needed,
            room,
        )
