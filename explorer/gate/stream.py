"""One websocket at the gate: what it says is checked before Streamlit reads it, and no path of ours leaves by it.

Too large a message, text, or something unreadable ends the connection. A kind that no page of ours sends is dropped,
and the connection goes on: Streamlit's own page asks for some of them by itself. Too many at once wait, and while they
do nothing more is read from the network.
"""

from __future__ import annotations

import asyncio
import logging

from starlette.types import Message, Receive, Send
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from explorer.gate import messages
from explorer.gate.allowance import Allowance
from explorer.gate.sizes import MOST_BYTES_IN

log = logging.getLogger(__name__)


class Stream:
    """Wraps the two directions of a websocket.

    script  the path of the script that draws the pages: Streamlit tells it every visitor
    """

    def __init__(self, receive: Receive, send: Send, script: str, address: str) -> None:
        self._receive, self._send, self._address = receive, send, address
        self._script = script.encode()
        self._messages = Allowance(messages.MESSAGES_A_S, messages.MESSAGES_AT_ONCE)
        self._bytes = Allowance(messages.BYTES_A_S, messages.BYTES_AT_ONCE)
        self._refused: set[str] = set()

    async def receive(self) -> Message:
        """The next message that may pass."""
        while True:
            message = await self._receive()
            if message["type"] != "websocket.receive":
                return message
            data = message.get("bytes")
            if data is None:
                return await self._end(messages.NOT_OURS, "text where Streamlit speaks in bytes")
            if len(data) > MOST_BYTES_IN:
                return await self._end(messages.TOO_BIG, f"a message of {len(data):,} bytes")
            kind = messages.kind_of(data)
            if kind is None:
                return await self._end(messages.UNREADABLE, "a message that is none")
            await asyncio.sleep(max(self._messages.wait_s(1), self._bytes.wait_s(len(data))))
            if kind in messages.NEEDED:
                return message
            self._drop(kind)

    async def send(self, message: Message) -> None:
        """Pass on what Streamlit says."""
        data = message.get("bytes")
        if data is not None and self._script in data:
            told = ForwardMsg.FromString(data)
            if told.WhichOneof("type") == "new_session":
                told.new_session.main_script_path = "app.py"
                message = {**message, "bytes": told.SerializeToString()}
        await self._send(message)

    def _drop(self, kind: str) -> None:
        if kind not in self._refused:  # once each: a flood must not fill the log
            self._refused.add(kind)
            log.info("from %s: a %s message was dropped, which no page here needs", self._address, kind or "nameless")

    async def _end(self, code: int, what: str) -> Message:
        log.warning("from %s: %s, so its connection was closed", self._address, what)
        await self._send({"type": "websocket.close", "code": code})
        return {"type": "websocket.disconnect", "code": code}
