"""The browser's side of the live line, as live_line.js and store.js do it: numbers commands, merges frames."""

from __future__ import annotations

import asyncio
import itertools
import json
import queue
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

from starlette.websockets import WebSocket

from engine.llm_engine import LLMEngine
from explorer.hosting.leases import Lease
from explorer.hosting.runtime import Runtime
from explorer.live.frame import read_plane, unpack
from explorer.live.live_line import Connection
from explorer.live.messages import VERSION
from explorer.live.tab import Tab

_names = itertools.count()
WAIT_S = 30.0


def _loop() -> asyncio.AbstractEventLoop:
    made = asyncio.new_event_loop()
    threading.Thread(target=made.run_forever, name="test-loop", daemon=True).start()
    return made


LOOP = _loop()
_lines: list[object] = []  # whoever forgets a page has not closed it


class Socket:
    """A WebSocket in memory: what the server says comes out of `said`, as (kind, value)."""

    def __init__(self, address: str = "") -> None:
        self._events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.said: queue.Queue[tuple[str, Any]] = queue.Queue()
        self.reads = asyncio.Event()  # cleared: whoever sends waits, as where a browser reads nothing
        self.reads.set()
        self._scope = {"type": "websocket", "headers": [], "client": (address, 1) if address else None}
        self._put({"type": "websocket.connect"})

    def websocket(self) -> WebSocket:
        """The server's end."""
        return WebSocket(self._scope, self._events.get, self._send)  # type: ignore[arg-type]

    def send(self, text: str | bytes) -> None:
        """One message up."""
        kind = "text" if isinstance(text, str) else "bytes"
        self._put({"type": "websocket.receive", kind: text})

    def cut(self) -> None:
        """The connection is lost."""
        self._put({"type": "websocket.disconnect", "code": 1006})

    def _put(self, event: dict[str, Any]) -> None:
        LOOP.call_soon_threadsafe(self._events.put_nowait, event)

    async def _send(self, message: Mapping[str, Any]) -> None:
        await self.reads.wait()
        if message["type"] == "websocket.send":
            self.said.put(("frame", message["bytes"]))
        elif message["type"] == "websocket.close":
            self.said.put(("close", (message["code"], message["reason"])))


def on_loop(work: Any) -> Any:
    """Call something on the event loop that tabs live on."""

    async def call() -> Any:
        return work()

    return asyncio.run_coroutine_threadsafe(call(), LOOP).result(WAIT_S)


def reap(server: Runtime) -> None:
    """Free what nobody uses, where the server does it: on the event loop."""
    on_loop(server.tabs.reap)


class Page:
    """One page instance in one browser tab, connected when it is made."""

    def __init__(
        self,
        server: Runtime,
        *,
        owner: str | None = None,
        params: Mapping[str, Sequence[str]] | None = None,
        session: Mapping[str, Any] | None = None,
        connect: bool = True,
        address: str = "",
    ) -> None:
        server.loop = LOOP
        self.server, self.address = server, address
        self._tab: Tab | None = None
        self.owner = owner or f"owner-{next(_names):020}"
        self.mount = f"mount{next(_names)}"
        self.query, self.session = urlencode(params or {}, doseq=True), session
        self.next, self.seen, self.beats = 1, 0, 0
        self.open: list[dict[str, Any]] = []
        self.epoch: int | None = None
        self.steps: list[dict[str, Any]] = []
        self.tokens: list[dict[str, Any]] = []
        self.answers: dict[int, dict[str, Any]] = {}
        self.header: dict[str, Any] = {"pieces": {}, "session": None, "busy": None}
        self.frames: list[dict[str, Any]] = []  # headers as they came
        self.ended: tuple[int, str] | None = None
        if connect:
            self.connect()
            self.until(lambda: "how" in self.header)
            assert self.tab

    @property
    def tab(self) -> Tab:
        """This page's tab on the server, or the one it had last."""
        sid = self.server.tabs.of_owner(self.owner)
        if sid is not None:
            self._tab = self.server.tabs.get(sid) or self._tab
        assert self._tab is not None
        return self._tab

    def connect(self, **changed: Any) -> None:
        """Open a line, also after one was lost."""
        self.socket = Socket(self.address)
        self.ended = None
        connection = Connection(self.socket.websocket(), self.server)
        self.serving = asyncio.run_coroutine_threadsafe(connection.serve(), LOOP)
        _lines.append((self.socket, self.serving))
        have = None if self.epoch is None else {"epoch": self.epoch, "steps": len(self.steps)}
        opening = {
            "loupe": VERSION,
            "owner": self.owner,
            "mount": self.mount,
            "query": self.query,
            "session": self.session,
            "have": have,
            "seen": self.seen,
            "commands": self.open,
        }
        self.socket.send(json.dumps({**opening, **changed}))

    def lose(self) -> None:
        """Lose the connection, and what has not been read of it."""
        self.socket.cut()
        self.serving.result(WAIT_S)

    def leave(self) -> None:
        """Close the page."""
        self.lose()
        self.server.tabs.release(Lease(self.tab.sid, self.owner))

    def queue(self, op: str, **args: Any) -> int:
        """Say a command and wait for nothing."""
        command = {"n": self.next, "op": op, "args": args}
        self.open.append(command)
        self.next += 1
        self.socket.send(json.dumps({**command, "seen": self.seen}))
        return self.next - 1

    def send_look(self, look: Mapping[str, Any]) -> None:
        """What this page looks at, for whoever follows it."""
        self.socket.send(json.dumps({"look": look}))

    def say_drawn(self, number: int) -> None:
        """This frame is on screen."""
        self.socket.send(json.dumps({"drawn": number}))

    def say(self) -> dict[str, Any]:
        """Take in everything that is new by now."""
        self.beats += 1
        self.socket.send(json.dumps({"beat": self.beats}))
        self.until(lambda: self.header.get("beat") == self.beats)
        return self.header

    def until(self, is_so: Any) -> None:
        """Take frames until something is so."""
        deadline = time.monotonic() + WAIT_S
        while not is_so():
            assert self.ended is None, f"the line ended: {self.ended}"
            assert time.monotonic() < deadline, "it never came"
            self.next_event()

    def next_event(self) -> None:
        """Take one frame, or the end."""
        kind, value = self.socket.said.get(timeout=WAIT_S)
        if kind == "close":
            self.ended = value
        else:
            self.take(value)

    def end(self) -> tuple[int, str]:
        """How the server ends the line."""
        while self.ended is None:
            self.next_event()
        self.serving.result(WAIT_S)
        return self.ended

    def take(self, frame: bytes) -> None:
        """Merge a frame."""
        header, planes = unpack(frame)
        fresh = hydrated(header, planes)
        self.frames.append(fresh)
        held = self.header["session"]
        pieces = {**self.header["pieces"], **fresh.pop("pieces", {})}
        for answer in fresh.get("answers", ()):
            self.answers[answer["n"]] = answer
            self.seen = max(self.seen, answer["n"])
            self.open = [command for command in self.open if command["n"] != answer["n"]]
        self.header = {**self.header, **fresh, "pieces": pieces}
        if "session" in fresh:
            self._take_session(fresh, held)

    def _take_session(self, fresh: dict[str, Any], held: dict[str, Any] | None) -> None:
        session = self.header["session"]
        if session is None:
            self.epoch, self.steps, self.tokens = None, [], []
            return
        recipe = session["recipe"]
        if "chosen_from" in recipe:  # what the frame left out, this page has already
            assert held is not None
            start, known = recipe.pop("chosen_from"), held["recipe"]
            recipe["chosen_ids"] = [*known["chosen_ids"][:start], *recipe["chosen_ids"]]
            recipe.update({name: known[name] for name in ("prompt", "prompt_ids", "roles")})
            session["prompt"] = held["prompt"]
        if "steps" in fresh:
            start = fresh["steps_from"]
            known = self.steps if self.epoch is not None and self.epoch in (session["epoch"], fresh["keeps"]) else []
            assert start <= len(known), "a frame left a gap"
            self.steps = [*known[:start], *fresh["steps"]]
            assert fresh["tokens_from"] <= len(self.tokens), "a frame left a gap"
            self.tokens = [*self.tokens[: fresh["tokens_from"]], *fresh["tokens"]]
            self.header["tokens"] = self.tokens
        self.epoch = session["epoch"]

    def ask(self, op: str, **args: Any) -> dict[str, Any]:
        """A command, and its answer."""
        n = self.queue(op, **args)
        self.until(lambda: n in self.answers)
        return self.answers[n]

    def ok(self, op: str, **args: Any) -> dict[str, Any]:
        """The value of a command that must succeed."""
        answer = self.ask(op, **args)
        assert answer["ok"], answer
        value: dict[str, Any] = answer["value"]
        return value

    def finish(self) -> None:
        """Take frames until every command is answered."""
        self.until(lambda: not self.open)

    @property
    def drawn(self) -> list[int]:
        """The tokens on screen after the prompt."""
        return [step["draw"]["token_id"] for step in self.steps]


def hydrated(value: Any, planes: bytes) -> Any:
    """A header with every description of an array replaced by the array."""
    if isinstance(value, list):
        return [hydrated(inner, planes) for inner in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"dtype", "shape", "offset"}:
        return read_plane(planes, value)  # type: ignore[arg-type]
    return {name: hydrated(inner, planes) for name, inner in value.items()}


@contextmanager
def engine_held(page: Page) -> Iterator[threading.Event]:
    """Keep the engine's thread busy until the event is set: whatever is asked for meanwhile stays under way."""
    started, free = threading.Event(), threading.Event()

    def work():
        yield from ()
        started.set()
        free.wait(30)

    done = page.tab.workspace.engine.submit("holder", work)
    started.wait(30)
    try:
        yield free
    finally:
        free.set()
        done.result(timeout=30)


def settle(engine: LLMEngine) -> None:
    """Wait until the engine has done what was asked of it so far."""
    deadline = time.monotonic() + 30
    while engine.counters().waiting and time.monotonic() < deadline:
        time.sleep(0.005)


def prefilled(page: Page, prompt: str = "abc") -> Page:
    """The page, with a prompt prefilled."""
    page.ok("prefill", prompt=prompt, mode="raw")
    return page


def reopened(old: Page, server: Runtime | None = None, *, solo: bool = False) -> Page:
    """A new page of the same browser tab, which says what its storage holds."""
    session = old.header["session"]
    return Page(server or old.server, session={"sid": session["sid"], "recipe": session["recipe"], "solo": solo})
