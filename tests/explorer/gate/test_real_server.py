"""A class on a real server, and somebody who speaks to it by hand: every kind of message, odd requests, floods."""

from __future__ import annotations

import asyncio
import random
import socket
import urllib.request
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol

from benchmarks.app import ROOT, RunningApp, started
from benchmarks.load.connection import Connection
from benchmarks.load.page import Page
from explorer.gate.messages import NEEDED, NOT_NEEDED
from explorer.gate.sizes import MOST_BYTES_IN
from tests.fresh_loop import run_async

PATIENCE_S = 60.0
KINDS = {field.name: field for field in BackMsg.DESCRIPTOR.oneofs_by_name["type"].fields}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


METRICS = free_port()


@pytest.fixture(scope="module")
def app(tiny_folder: Path) -> Iterator[RunningApp]:
    """A class of one place."""
    hosted = {
        "LOUPE_MODE": "hosted",
        "LOUPE_MODEL": str(tiny_folder),
        "LOUPE_MAX_SESSIONS": "1",
        "LOUPE_CONFIG": "",
        "LOUPE_METRICS_PORT": str(METRICS),
        "LOUPE_GRACE_S": "1",
    }
    with started(("-m", "streamlit", "run", "app.py"), hosted) as running:
        yield running


def metrics() -> dict[str, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{METRICS}/metrics", timeout=10) as answer:
        rows = [line.split(" ") for line in answer.read().decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in rows if "{" not in name}


def run(what: Coroutine[Any, Any, None]) -> None:
    run_async(asyncio.wait_for(what, 2 * PATIENCE_S))


@asynccontextmanager
async def student(url: str) -> AsyncIterator[Page]:
    """A student with a run of one step, who leaves at the end."""
    for _ in range(100):  # the place of the test before this one is kept for a second
        if metrics()["loupe_sessions"] == 0:
            break
        await asyncio.sleep(0.2)
    page = Page(await Connection.open(url))
    await asyncio.wait_for(page.start(), PATIENCE_S)
    await asyncio.wait_for(page.send("prefill", prompt="abc", mode="raw"), PATIENCE_S)
    try:
        yield page
    finally:
        await page.stop()
        await page.connection.close()


async def step(page: Page) -> int:
    """The number of the step that a press leads to."""
    answer = await asyncio.wait_for(page.send("step"), PATIENCE_S)
    assert answer.error is None, answer
    assert answer.value is not None
    return int(answer.value["step"])


def stranger(url: str, **headers: str) -> Any:
    return connect(
        f"{url.replace('http', 'ws', 1)}/_stcore/stream",
        subprotocols=[Subprotocol("streamlit")],
        proxy=None,
        max_size=None,
        additional_headers=headers,
        compression=None,
    )


def message(kind: str) -> BackMsg:
    """The emptiest message of a kind."""
    made = BackMsg()
    if KINDS[kind].message_type is None:
        setattr(made, kind, True)
    else:
        getattr(made, kind).SetInParent()
    return made


async def still_open(ws: ClientConnection) -> bool:
    """Whether the server answers on this connection."""
    await ws.send(message("rerun_script").SerializeToString())
    try:
        async with asyncio.timeout(PATIENCE_S):
            while ForwardMsg.FromString(await ws.recv()).WhichOneof("type") != "script_finished":
                pass
    except ConnectionClosed:
        return False
    return True


def test_somebody_has_decided_on_every_kind_of_message_there_is():
    assert NEEDED | set(NOT_NEEDED) == set(KINDS)
    assert not NEEDED & set(NOT_NEEDED)


def test_every_kind_of_message_leaves_the_class_as_it_is(app):
    async def happens() -> None:
        async with student(app.url) as page:
            assert await step(page) == 1
            before = metrics()
            async with stranger(app.url) as ws:
                for kind in KINDS:
                    await ws.send(message(kind).SerializeToString())
                    assert await still_open(ws), kind
            after = metrics()
            same = ("loupe_sessions", "loupe_sessions_known", "loupe_runs", "loupe_kv_live_bytes", "loupe_tokens_total")
            assert {name: after[name] for name in same} == {name: before[name] for name in same}
            assert page.failure is None
            assert await step(page) == 2  # in the same run, of the same engine
            assert metrics()["loupe_tokens_total"] == before["loupe_tokens_total"] + 1
            async with stranger(app.url) as ws:  # and there is still one place only
                assert await still_open(ws)
                assert metrics()["loupe_sessions"] == 1

    run(happens())


def test_what_can_be_no_message_ends_its_own_connection_and_no_other(app):
    too_long = message("rerun_script")
    too_long.rerun_script.query_string = "a" * MOST_BYTES_IN

    async def ended(what: bytes | str) -> int | None:
        async with stranger(app.url) as ws:
            await ws.send(what)
            try:
                async with asyncio.timeout(PATIENCE_S):
                    while True:
                        await ws.recv()
            except ConnectionClosed as closed:
                return closed.rcvd.code if closed.rcvd else None

    async def happens() -> None:
        async with student(app.url) as page:
            assert await ended(too_long.SerializeToString()) == 1009
            assert await ended(b"\xff\xff\xff") == 1002
            assert await ended("text") == 1003
            assert await step(page) == 1

    run(happens())


def test_random_messages_break_nothing(app):
    rng = random.Random(7)

    def odd() -> bytes:
        made = message(rng.choice(list(KINDS)))
        rerun = made.rerun_script if rng.random() < 0.7 else BackMsg().rerun_script
        rerun.query_string = rng.choice(["n=1e999", "prompt=" + "%" * 500, "&&&=", "step=" + "9" * 5000, "a=b&" * 1500])
        rerun.page_name = rng.choice(["", "../../etc/passwd", "class", "\x00", "floor"])
        rerun.fragment_id = rng.choice(["", "x", "\u202e"])
        for _ in range(rng.randrange(3)):
            state = rerun.widget_states.widgets.add()
            state.id = rng.choice(["", "x", "$$ID-1-2", "n" * 1000])
            state.json_value = rng.choice(["", "{", "[" * 5000, "9" * 5000, '{"wire": 1e999}', "NaN"])
        data = made.SerializeToString()
        return data if rng.random() < 0.8 else data[: rng.randrange(len(data) + 1)]

    async def happens() -> None:
        async with student(app.url) as page:
            for _ in range(12):
                async with stranger(app.url) as ws:
                    try:
                        for _ in range(10):
                            await ws.send(odd())
                    except ConnectionClosed:
                        pass
            assert await step(page) == 1

    run(happens())


def test_only_pages_of_this_very_server_may_connect(app):
    host = app.url.removeprefix("http://")

    async def status(**headers: str) -> int:
        try:
            async with stranger(app.url, **headers):
                return 101
        except InvalidStatus as refused:
            return int(refused.response.status_code)

    async def happens() -> None:
        assert await status(Origin=f"http://{host}") == 101
        for origin in (
            "http://evil.example",
            "null",
            f"http://{host}.evil.example",
            f"file://{host}",
            "http://127.0.0.1",
        ):
            assert await status(Origin=origin) == 403, origin

    run(happens())


def raw(url: str, request: str) -> tuple[int, dict[str, str], bytes]:
    """What comes back for a request written by hand; "HOST" in it stands for the server's own."""
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as wire:
        wire.sendall(request.replace("HOST", f"{host}:{port}").encode("latin-1"))
        got = b""
        while part := wire.recv(65_536):
            got += part
    head, _, body = got.partition(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return int(status.split(" ")[1]), headers, body


def asked(url: str, method: str, path: str, *headers: str) -> tuple[int, dict[str, str], bytes]:
    given = headers if any(header.lower().startswith("host:") for header in headers) else ("Host: HOST", *headers)
    return raw(url, "\r\n".join([f"{method} {path} HTTP/1.1", *given, "Connection: close", "", ""]))


def test_nothing_is_uploaded(app):
    path = "/_stcore/upload_file/a/b"
    pair = "Cookie: _streamlit_xsrf=x", "X-Xsrftoken: x", "Content-Length: 0"
    assert asked(app.url, "PUT", path, *pair)[0] == 405
    for method in ("POST", "DELETE", "PATCH", "OPTIONS"):
        assert asked(app.url, method, path, "Content-Length: 0")[0] == 405
    assert asked(app.url, "GET", path)[0] == 404


def test_a_name_that_is_not_this_servers_is_refused_in_words(app):
    for host in ("evil.example", "127.0.0.1.evil.example", "localhost@evil.example", "", "a b", "evil.example:80"):
        status, _, body = asked(app.url, "GET", "/", f"Host: {host}")
        assert status == 421, host
        assert b"LOUPE_HOSTS" in body
    for host in ("localhost:1", "127.0.0.1", "[::1]:8501", "192.168.1.7:8501", "a.localhost"):
        assert asked(app.url, "GET", "/_stcore/health", f"Host: {host}")[0] == 200, host


def test_odd_requests_get_an_answer_and_no_page_shows_this_machines_paths(app):
    rng = random.Random(3)
    paths = [
        "/",
        "/floor",
        "/_stcore/health",
        "/_stcore/host-config",
        "/_stcore/metrics",
        "/_stcore/agent/x",
        "/media/x",
    ]
    paths += [
        "/component/x/y",
        "/static/../../app.py",
        "/%2e%2e/app.py",
        "//evil",
        "/_stcore/bidi-components/x",
        "/auth/login",
    ]
    for _ in range(60):
        method = rng.choice(["GET", "HEAD", "PUT", "BREW", "OPTIONS", "TRACE"])
        origin = rng.choice(["http://evil.example", "http://HOST", "null"])
        status, headers, body = asked(app.url, method, rng.choice(paths), f"Origin: {origin}")
        assert 200 <= status < 500
        assert str(ROOT).encode() not in body
        if method not in ("GET", "HEAD") or origin != "http://HOST":
            assert status in (400, 403, 405)
        if status != 400:  # that one the web server gives by itself
            assert "frame-ancestors" in headers["content-security-policy"]


def test_no_visitor_is_told_where_the_program_lies(app):
    async def happens() -> None:
        async with stranger(app.url) as ws:
            await ws.send(message("rerun_script").SerializeToString())
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    data = await ws.recv()
                    assert isinstance(data, bytes)
                    assert str(ROOT).encode() not in data
                    if ForwardMsg.FromString(data).WhichOneof("type") == "script_finished":
                        return

    run(happens())


def test_the_health_check_says_the_same_to_head_and_is_never_kept(app):
    for method in ("GET", "HEAD"):
        status, headers, body = asked(app.url, method, "/_stcore/health")
        assert (status, headers["cache-control"]) == (200, "no-cache")
        assert (b"engine: well" in body) == (method == "GET")
