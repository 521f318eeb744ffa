"""The one entrance for everything that comes from outside, in front of Streamlit and whatever else the app serves."""

from __future__ import annotations

import logging
from collections.abc import Callable

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from explorer.gate import requests
from explorer.gate.addresses import Names, is_same_origin
from explorer.gate.stream import Stream
from explorer.hosting.connections import HEADER, Connections

log = logging.getLogger(__name__)

STREAM = "/_stcore/stream"  # Streamlit's own socket
WRONG_NAME = (
    "This Loupe does not go by that name. Whoever started it can let it: LOUPE_HOSTS lists the names it answers to, "
    "separated by commas."
)
WRONG_PAGE = "This Loupe only answers its own pages."


class Gate:
    """Wraps an app.

    names        the names it goes by, asked at every request
    connections  where open websockets are listed
    script       the path of the script that draws the pages, which stays here
    """

    def __init__(self, app: ASGIApp, names: Callable[[], Names], connections: Connections, script: str) -> None:
        self._app, self._names, self._connections, self._script = app, names, connections, script

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let through what may pass."""
        if scope["type"] == "http":
            await self._request(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._websocket(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *requests.HEADERS]}
            await send(message)

        refused = self._stranger(scope) or requests.refusal(scope["method"], scope["path"])
        if refused is not None:
            status, words = refused
            await PlainTextResponse(words + "\n", status, headers={"cache-control": "no-store"})(
                scope, receive, guarded
            )
            return
        # Without an Origin, which is our own here, Streamlit has nothing to look up.
        headers = [(name, value) for name, value in scope["headers"] if name != b"origin"]
        await self._app({**scope, "headers": headers}, receive, guarded)

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        address = _address(scope)
        if self._stranger(scope) is not None:
            await send({"type": "websocket.close", "code": 1008})  # before it is accepted: 403
            return
        name = self._connections.open(address)
        headers = [(key, value) for key, value in scope["headers"] if key != HEADER.encode()]
        headers.append((HEADER.encode(), name.encode()))
        if scope["path"].endswith(STREAM):
            stream = Stream(receive, send, self._script, address)
            receive, send = stream.receive, stream.send
        try:
            await self._app({**scope, "headers": headers}, receive, send)
        finally:
            self._connections.close(name)

    def _stranger(self, scope: Scope) -> tuple[int, str] | None:
        """Why a request is none of ours; None where it is."""
        hosts, origins = _values(scope, b"host"), _values(scope, b"origin")
        if len(hosts) != 1 or not self._names().has(hosts[0]):
            log.warning("from %s: refused, it asked for %s", _address(scope), _short(hosts))
            return 421, WRONG_NAME
        if origins and (len(origins) > 1 or not is_same_origin(origins[0], hosts[0])):
            log.warning("from %s: refused, its page is from %s", _address(scope), _short(origins))
            return 403, WRONG_PAGE
        return None


def _values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


def _short(values: list[str]) -> str:
    return repr(", ".join(values))[:80]  # repr: no line break of a stranger gets into the log


def _address(scope: Scope) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""
