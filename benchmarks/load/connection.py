"""A browser tab's two websockets: Streamlit's, which brings the page and the tab's secret, and the live line.

Streamlit is asked for the page once, as a tab does when it opens or comes back, and says nothing more while somebody
steps. Its socket stays open all the same, as in a browser.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from explorer.components.step_page import NAME

OPEN_TIMEOUT_S = 30.0
NO_TOKEN = "none"  # stands where a browser sends its XSRF token, which only signed-in users need


class PageFailed(Exception):
    """The server sent an exception or a page that has no component."""


class Connection:
    """Both websockets of one tab. `owner` is its secret; `session_id` is Streamlit's name for what is behind it."""

    def __init__(self, page: ClientConnection, line: ClientConnection, owner: str, session_id: str) -> None:
        self.owner, self.session_id = owner, session_id
        self.bytes_received = 0
        self._page, self._line = page, line
        self._draining = asyncio.create_task(_drain(page))

    @classmethod
    async def open(cls, url: str, *, after: Connection | None = None) -> Connection:
        """Open the app at `http://127.0.0.1:port`, and a line that is silent yet. `after` a lost one: the same tab."""
        names = ["streamlit", NO_TOKEN, after.session_id] if after else ["streamlit"]
        page = await _websocket(f"{url}/_stcore/stream", names)
        owner, session_id = await _read_page(page)
        return cls(page, await _websocket(f"{url}/live-line", None), owner, session_id)

    async def say(self, message: Mapping[str, Any]) -> None:
        """One message up the line."""
        await self._line.send(json.dumps(message))

    async def frames(self) -> AsyncIterator[bytes]:
        """What comes down the line, until either side ends it. Raises ConnectionError where the server refuses us."""
        async for raw in self._line:
            assert isinstance(raw, bytes), "frames are bytes"
            self.bytes_received += len(raw)
            yield raw
        if self._line.close_code not in (1000, 1001):
            raise ConnectionError(f"the line was ended: {self._line.close_code} {self._line.close_reason}")

    async def close(self) -> None:
        """Leave as a closed tab does."""
        self._draining.cancel()
        await asyncio.gather(self._page.close(), self._line.close())

    def vanish(self) -> None:
        """Leave without a word, as a lost network does."""
        self._draining.cancel()
        self._page.transport.abort()
        self._line.transport.abort()


async def _websocket(url: str, names: list[str] | None) -> ClientConnection:
    return await connect(
        url.replace("http", "ws", 1),
        subprotocols=None if names is None else [Subprotocol(name) for name in names],
        open_timeout=OPEN_TIMEOUT_S,
        max_size=None,
        compression=None,
        proxy=None,
    )


async def _read_page(ws: ClientConnection) -> tuple[str, str]:
    """Ask for the whole page; the owner's secret that its component is given, and Streamlit's name of the session."""
    message = BackMsg()
    message.rerun_script.SetInParent()
    await ws.send(message.SerializeToString())
    session_id = owner = ""
    while not owner:
        raw = await ws.recv()
        assert isinstance(raw, bytes), "Streamlit speaks in binary messages"
        said = ForwardMsg.FromString(raw)
        kind = said.WhichOneof("type")
        if kind == "new_session":
            session_id = said.new_session.initialize.session_id
        elif kind == "script_finished":
            raise PageFailed("the page has no component")
        elif kind == "delta":
            owner = _owner(said)
    return owner, session_id


def _owner(said: ForwardMsg) -> str:
    element = said.delta.new_element
    name = element.WhichOneof("type")
    if name == "exception":
        raise PageFailed(f"{element.exception.type}: {element.exception.message}")
    if name != "bidi_component" or element.bidi_component.component_name != NAME:
        return ""
    return str(json.loads(element.bidi_component.json)["owner"])


async def _drain(ws: ClientConnection) -> None:
    """Nobody looks at what else Streamlit says, and unread it would fill the socket."""
    with contextlib.suppress(ConnectionClosed):
        async for _ in ws:
            pass
