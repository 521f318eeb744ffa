"""The live line on a real server, under a base path: who may speak, floods, half messages, and who reads nothing."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import socket
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from benchmarks.app import RunningApp, started
from explorer.live import live_line
from explorer.live.frame import unpack
from tests.fresh_loop import run_async

PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def app(tiny_folder: Path) -> Iterator[RunningApp]:
    arguments = ("-m", "streamlit", "run", "app.py", "--server.baseUrlPath=/loupe")
    with started(arguments, {"LOUPE_MODEL": str(tiny_folder)}, under="/loupe") as running:
        yield running


class Visitor:
    """One page on the line."""

    def __init__(self, ws: ClientConnection) -> None:
        self.ws, self.n = ws, 0

    async def open(self, owner: str | None = None, mount: str = "m") -> None:
        await self.ws.send(json.dumps({"loupe": 1, "owner": owner or os.urandom(12).hex(), "mount": mount}))
        await self.until(lambda header: "how" in header)

    async def until(self, is_so: Any) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                frame = await self.ws.recv()
                assert isinstance(frame, bytes)
                header, _ = unpack(frame)
                if is_so(header):
                    return header

    async def ask(self, op: str, **args: Any) -> dict[str, Any]:
        self.n += 1
        await self.ws.send(json.dumps({"n": self.n, "op": op, "args": args}))
        header = await self.until(lambda header: any(a["n"] == self.n for a in header.get("answers", ())))
        answer: dict[str, Any] = header["answers"][-1]
        assert answer["ok"], answer
        return answer["value"]


def address(app: RunningApp) -> str:
    return app.url.replace("http", "ws", 1) + "/loupe/live-line"


@asynccontextmanager
async def visitor(app: RunningApp) -> AsyncIterator[Visitor]:
    async with connect(address(app), proxy=None, max_size=None, compression=None) as ws:
        made = Visitor(ws)
        await made.open()
        await made.ask("prefill", prompt="abc", mode="raw")
        yield made


def run(what: Coroutine[Any, Any, None]) -> None:
    run_async(asyncio.wait_for(what, 2 * PATIENCE_S))


def test_only_pages_of_this_very_server_may_open_a_line(app):
    host = app.url.removeprefix("http://")

    async def status(where: str, **headers: str) -> int:
        try:
            async with connect(where, proxy=None, additional_headers=headers):
                return 101
        except InvalidStatus as refused:
            return int(refused.response.status_code)

    async def happens() -> None:
        assert await status(address(app), Origin=f"http://{host}") == 101
        for origin in ("http://evil.example", "null", f"http://{host}.evil.example", f"file://{host}"):
            assert await status(address(app), Origin=origin) == 403, origin
        assert await status(app.url.replace("http", "ws", 1) + "/live-line") == 403, "under the base path alone"

    run(happens())


def test_ten_thousand_commands_at_once_hold_up_their_sender_alone(app):
    async def flood(ws: ClientConnection) -> None:
        for n in range(1, 10_001):
            await ws.send(json.dumps({"n": n, "op": "step", "args": {}}))

    async def happens() -> None:
        async with visitor(app) as other, connect(address(app), proxy=None, max_size=None, compression=None) as ws:
            await Visitor(ws).open()
            flooding = asyncio.create_task(flood(ws))
            for _ in range(5):
                await other.ask("step")
            flooding.cancel()
            ws.transport.abort()  # its end of the line is full: no farewell would be read

    run(happens())


def raw(app: RunningApp) -> socket.socket:
    """A line as far as its handshake, byte by byte from here on."""
    host, port = app.url.removeprefix("http://").split(":")
    made = socket.create_connection((host, int(port)), timeout=PATIENCE_S)
    key = base64.b64encode(os.urandom(16)).decode()
    head = (
        f"GET /loupe/live-line HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n"
    )
    made.sendall(head.encode())
    assert b" 101 " in made.recv(65_536)
    return made


def masked(data: bytes, declared: int | None = None) -> bytes:
    """A text frame of a client; `declared` names another length than it has."""
    size = len(data) if declared is None else declared
    return b"\x81" + bytes([0x80 | 126]) + size.to_bytes(2, "big") + b"\0\0\0\0" + data


def test_a_socket_cut_in_the_middle_of_a_message_costs_nobody_anything(app):
    opening = json.dumps({"loupe": 1, "owner": "x" * 20, "mount": "m"}).encode()

    async def happens() -> None:
        async with visitor(app) as other:
            for data in (
                b"\x81",
                masked(opening, declared=500),
                masked(opening) + masked(b'{"n": 1, "op"', declared=60),
            ):
                cut = raw(app)
                cut.sendall(data)
                cut.close()
            for _ in range(3):
                await other.ask("step")

    run(happens())


def test_a_frame_that_breaks_the_protocol_ends_its_own_line(app):
    got = b""
    with raw(app) as odd:
        odd.sendall(b"\xff\xff\xff\xff")
        while part := odd.recv(4096):
            got += part
    assert got[:2] == b"\x88" + bytes([len(got) - 2]) and int.from_bytes(got[2:4], "big") == 1002


def test_a_browser_that_reads_nothing_does_not_slow_the_others(app):
    opening = json.dumps({"loupe": 1, "owner": "y" * 20, "mount": "m"}).encode()

    async def happens() -> None:
        deaf = raw(app)
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.sendall(masked(opening))
        for n in range(1, 200):
            deaf.sendall(masked(json.dumps({"n": n, "op": "prefill", "args": {"prompt": "abc" * 50}}).encode()))
        async with visitor(app) as other:
            for _ in range(5):
                await other.ask("step")
        deaf.close()

    run(happens())


def test_a_message_of_more_than_two_megabytes_ends_the_line(app):
    async def happens() -> None:
        async with connect(address(app), proxy=None, max_size=None, compression=None) as ws:
            await Visitor(ws).open()
            with suppress(ConnectionClosed):  # it may end before the message is out
                await ws.send(json.dumps({"n": 1, "op": "prefill", "args": {"prompt": "x" * 2_200_000}}))
                while True:
                    await ws.recv()
            assert ws.close_code == live_line.TOO_BIG

    run(happens())
