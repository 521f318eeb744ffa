"""A browser tab's websocket to Streamlit: protobuf messages, and the component that gets the frames.

A tab says `rerun_script` with the state of every widget; the server answers with deltas, one of which carries our
frame. Streamlit answers in several small packets and waits for each to be confirmed; browsers confirm at once, so
this client asks its system for that too (Linux: TCP_QUICKACK), or 40 ms would be measured that no browser sees.
"""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator, Mapping
from typing import Any

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

from explorer.components.step_page import NAME

OPEN_TIMEOUT_S = 30.0
NO_TOKEN = "none"  # stands where a browser sends its XSRF token, which only signed-in users need
QUICKACK: int | None = getattr(socket, "TCP_QUICKACK", None)


class PageFailed(Exception):
    """The server sent an exception or a page that has no component."""


class Connection:
    """One websocket. `session_id` is Streamlit's name for what is behind it, and outlives it for a while."""

    def __init__(self, ws: ClientConnection) -> None:
        self._ws = ws
        self.session_id = ""
        self.bytes_received = 0
        self._component = ""
        self._fragment = ""
        self._script = ""

    @classmethod
    async def open(cls, url: str, *, after: Connection | None = None) -> Connection:
        """Connect to the app at `http://127.0.0.1:port` and say nothing yet. `after` a lost one: the same session."""
        names = ["streamlit", NO_TOKEN, after.session_id] if after else ["streamlit"]
        ws = await connect(
            f"{url.replace('http', 'ws', 1)}/_stcore/stream",
            subprotocols=[Subprotocol(name) for name in names],
            open_timeout=OPEN_TIMEOUT_S,
            max_size=None,
            compression=None,
            proxy=None,
        )
        made = cls(ws)
        if after is not None:
            made.session_id, made._script = after.session_id, after._script
            made._component, made._fragment = after._component, after._fragment
        return made

    async def run_app(self, state: Mapping[str, Any] | None = None) -> None:
        """Ask for the whole page, as a tab does when it opens or reconnects."""
        await self._send(state, fragment="")

    async def say(self, state: Mapping[str, Any]) -> None:
        """Report the component's state, which reruns its fragment."""
        await self._send(state, fragment=self._fragment)

    async def frames(self) -> AsyncIterator[bytes]:
        """The component's data, each time a run of the script has set it."""
        async for raw in self._ws:
            self._confirm()
            assert isinstance(raw, bytes), "Streamlit speaks in binary messages"
            self.bytes_received += len(raw)
            frame = self._read(raw)
            if frame is not None:
                yield frame

    async def close(self) -> None:
        """Leave as a closed tab does."""
        await self._ws.close()

    def vanish(self) -> None:
        """Leave without a word, as a lost network does."""
        self._ws.transport.abort()

    def _read(self, raw: bytes) -> bytes | None:
        message = ForwardMsg.FromString(raw)
        kind = message.WhichOneof("type")
        if kind == "new_session":
            self.session_id = message.new_session.initialize.session_id or self.session_id
            self._script = message.new_session.page_script_hash
        if kind != "delta":
            return None
        element = message.delta.new_element
        name = element.WhichOneof("type")
        if name == "exception":
            raise PageFailed(f"{element.exception.type}: {element.exception.message}")
        if name != "bidi_component" or element.bidi_component.component_name != NAME:
            return None  # the page's code is an element of its own
        self._component, self._fragment = element.bidi_component.id, message.delta.fragment_id
        return bytes(element.bidi_component.bytes)

    async def _send(self, state: Mapping[str, Any] | None, *, fragment: str) -> None:
        message = BackMsg()
        rerun = message.rerun_script
        rerun.fragment_id, rerun.page_script_hash = fragment, self._script
        if state is not None and self._component:
            widget = rerun.widget_states.widgets.add()
            widget.id, widget.json_value = self._component, json.dumps({"wire": state})
        await self._ws.send(message.SerializeToString())

    def _confirm(self) -> None:
        """The system forgets this wish by itself, so it is said again after every message."""
        plain = self._ws.transport.get_extra_info("socket")
        if QUICKACK is not None and plain is not None:
            plain.setsockopt(socket.IPPROTO_TCP, QUICKACK, 1)
