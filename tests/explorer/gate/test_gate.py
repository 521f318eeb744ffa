"""The gate's own rules, one by one."""

from __future__ import annotations

import logging
import random
import resource
import tomllib
from pathlib import Path
from typing import Any

import pytest
from streamlit.runtime import runtime_util

from explorer.gate import descriptors, messages, sizes
from explorer.gate.addresses import Names, is_same_origin
from explorer.gate.allowance import Allowance
from explorer.gate.gate import Gate
from explorer.hosting.connections import HEADER, Connections
from tests.explorer.hosting.test_leases import Clock
from tests.fresh_loop import run_async

CONFIG = tomllib.loads((Path(__file__).resolve().parents[3] / ".streamlit" / "config.toml").read_text())


# --- names ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8501", "127.0.0.1:1", "[::1]:8501", "10.1.2.3", "localhost."])
def test_digits_and_localhost_are_this_servers_names(host):
    assert Names().has(host)


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "user@localhost", "localhost/x", "", "[x]", "a b"]
)
def test_no_other_name_is(host):
    assert not Names().has(host)


def test_its_owner_can_give_it_names():
    assert Names(["Loupe.example.org"]).has("loupe.example.org:443")
    assert not Names(["loupe.example.org"]).has("x.loupe.example.org")
    assert Names(["*.example.org"]).has("a.b.example.org")
    assert not Names(["*.example.org"]).has("example.org")
    assert Names(["*"]).has("anything.example")


def test_random_hosts_are_answered_with_yes_or_no():
    rng = random.Random(1)
    for _ in range(2_000):
        host = "".join(rng.choice("a.:[]@/\\\x00é1-*%") for _ in range(rng.randrange(12)))
        assert not Names(["*.example"]).has(host + ".evil")


def test_an_origin_is_this_server_or_refused():
    assert is_same_origin("https://loupe.example:8443", "loupe.example:8443")
    for origin in (
        "null",
        "loupe.example",
        "https://loupe.example",
        "ftp://loupe.example:8443",
        "https://x@loupe.example:8443",
    ):
        assert not is_same_origin(origin, "loupe.example:8443")


# --- the way through ------------------------------------------------------------------------------------------


def passed(scope: dict[str, Any], connections: Connections | None = None) -> tuple[dict[str, Any] | None, int]:
    """What the app behind the gate was asked, and the status of the answer."""
    seen: list[dict[str, Any]] = []
    told: list[dict[str, Any]] = []

    async def app(scope: dict[str, Any], _receive: Any, send: Any) -> None:
        seen.append(scope)
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def send(message: dict[str, Any]) -> None:
        told.append(message)

    gate = Gate(app, Names, connections or Connections(), "/secret/main.py")  # type: ignore[arg-type]
    run_async(gate(scope, None, send))  # type: ignore[arg-type]
    return (seen[0] if seen else None), told[0].get("status", told[0].get("code"))


def scope(kind: str = "http", *headers: tuple[bytes, bytes], path: str = "/") -> dict[str, Any]:
    given = headers if any(name == b"host" for name, _ in headers) else ((b"host", b"localhost:1"), *headers)
    return {"type": kind, "method": "GET", "path": path, "headers": list(given), "client": ("1.2.3.4", 5)}


def test_streamlit_never_sees_an_origin_it_would_look_up():
    seen, _ = passed(scope("http", (b"origin", b"http://localhost:1")))
    assert seen is not None and b"origin" not in dict(seen["headers"])
    assert passed(scope("http", (b"origin", b"http://evil.example"))) == (None, 403)
    assert passed(scope("websocket", (b"origin", b"http://evil.example"))) == (None, 1008)


def test_two_hosts_are_none():
    assert passed(scope("http", (b"host", b"localhost"), (b"host", b"localhost"))) == (None, 421)


def test_a_connections_name_comes_from_the_gate_alone_and_ends_with_it():
    connections = Connections()
    seen, _ = passed(scope("websocket", (HEADER.encode(), b"forged")), connections)
    assert seen is not None
    names = [value for name, value in seen["headers"] if name == HEADER.encode()]
    assert len(names) == 1 and names != [b"forged"]
    assert len(connections) == 0


# --- connections ----------------------------------------------------------------------------------------------


def test_what_is_kept_is_let_go_with_the_last_connection_that_keeps_it():
    connections, gone = Connections(), []
    first, second = connections.open("a"), connections.open("b")
    for name in (first, second, second):
        connections.keep(name, "run", lambda: gone.append("run"))
    connections.close(first)
    assert gone == []
    connections.close(second)
    assert gone == ["run"]


def test_what_is_kept_for_a_connection_that_is_gone_is_let_go_at_once():
    connections, gone = Connections(), []
    connections.keep(None, "test", lambda: gone.append("test"))
    assert gone == []  # nothing watches connections here
    name = connections.open("a")
    connections.close(name)
    for lost in (name, None):
        connections.keep(lost, "run", lambda: gone.append("run"))
    assert gone == ["run", "run"]


# --- sizes and rates ------------------------------------------------------------------------------------------


def test_no_more_than_two_megabytes_come_in_and_much_more_may_go_out(monkeypatch):
    assert CONFIG["server"]["maxMessageSize"] * 1_000_000 == sizes.MOST_BYTES_IN
    assert CONFIG["server"]["maxWidgetStateSize"] * 1_000_000 == sizes.MOST_BYTES_IN
    monkeypatch.setattr(runtime_util, "_max_message_size_bytes", sizes.MOST_BYTES_IN)
    sizes.allow_large_frames()
    assert runtime_util.get_max_message_size_bytes() == sizes.MOST_BYTES_OUT


def test_it_listens_on_this_machine_unless_asked_and_never_looks_for_its_address():
    assert CONFIG["server"]["address"] == "localhost"
    assert CONFIG["browser"]["serverAddress"] == "localhost"


def test_an_allowance_is_spent_at_once_and_then_by_the_second():
    clock = Clock()
    allowance = Allowance(a_second=10, at_once=3, clock=clock)
    assert [allowance.wait_s(1) for _ in range(5)] == [0, 0, 0, pytest.approx(0.1), pytest.approx(0.2)]
    clock.now += 100
    assert [allowance.wait_s(1) for _ in range(4)] == [0, 0, 0, pytest.approx(0.1)]


def test_random_bytes_have_a_kind_or_none():
    rng = random.Random(5)
    for _ in range(3_000):
        kind = messages.kind_of(rng.randbytes(rng.randrange(40)))
        assert kind is None or kind == "" or kind in messages.NEEDED or kind in messages.NOT_NEEDED


# --- descriptors ----------------------------------------------------------------------------------------------


def test_the_limit_on_descriptors_is_raised_as_far_as_the_system_lets_us(monkeypatch, caplog):
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: asked.append(limits))
    with caplog.at_level(logging.WARNING):
        descriptors.raise_limit(100)
        assert not caplog.records
        descriptors.raise_limit(1000)
    assert asked == [(4096, 4096)] * 2
    assert "may open 4096 files and sockets; 1000 tabs need 8512" in caplog.text
    assert "there is room for 448" in caplog.text


def test_nothing_lives_in_streamlits_caches_which_can_be_emptied():
    for path in sorted((Path(__file__).resolve().parents[3] / "explorer").rglob("*.py")):
        assert "st.cache_" not in path.read_text(), path
