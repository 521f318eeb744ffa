"""Under which names this server answers, and whose pages may speak to it.

A page elsewhere on the web can make its own name point to this machine (DNS rebinding): then the browser takes our
answers for that page's own, and only the Host header tells. An address in digits cannot be rebound, a name can. So a
name must be one of this machine's or one that its owner has set.

Where Origin is not this very server the answer is no, always. Streamlit would first ask the internet for its own
address, and everybody would wait with it.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from collections.abc import Iterable
from functools import lru_cache

from streamlit import config

from explorer.hosting.limits import from_environment

_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]{2,45}\]|[a-z0-9._-]{1,253})(:\d{1,5})?", re.ASCII)


class Names:
    """The names this server goes by.

    hosts  those its owner set; "*.example.org" is every name under it, "*" every name at all
    """

    def __init__(self, hosts: Iterable[str] = ()) -> None:
        own = socket.gethostname().lower()
        self._names = {"localhost", own, f"{own}.local", *(host.lower().rstrip(".") for host in hosts)}

    def has(self, host: str) -> bool:
        """Whether a Host header names this server."""
        found = _HOST.fullmatch(host.lower())
        if found is None:
            return False
        name = found["name"].rstrip(".")
        if _is_address(name.strip("[]")) or name in self._names or "*" in self._names:
            return True
        return name.endswith(".localhost") or any(
            name.endswith(known[1:]) for known in self._names if known.startswith("*.")
        )


@lru_cache(maxsize=1)
def served_names() -> Names:
    """The names of this very server: where it was told to listen, and what its owner has set."""
    told = [config.get_option(option) for option in ("server.address", "browser.serverAddress")]
    return Names([*filter(None, told), *from_environment(os.environ).names])


def under_base(path: str) -> str:
    """A path of ours as it is asked for where the app is served under a base (`server.baseUrlPath`)."""
    base = str(config.get_option("server.baseUrlPath")).strip("/")
    return f"/{base}/{path}" if base else f"/{path}"


def is_same_origin(origin: str, host: str) -> bool:
    """Whether an Origin header names the very server that was asked."""
    scheme, _, asked = origin.partition("://")
    return scheme in ("http", "https") and asked == host


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
