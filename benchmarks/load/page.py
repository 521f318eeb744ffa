"""One page instance: its log of commands and the records it holds, as wire.js and store.js keep them."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from websockets.exceptions import ConnectionClosed

from benchmarks.load.connection import Connection
from explorer.live.frame import unpack

RESEND_AFTER_S = 4.0
DRAW_S = 0.016  # a browser asks again once a frame is drawn

_names = itertools.count()


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a command. Times in seconds of one clock.

    asked   when it was due, which may be before it could be said
    came    when the frame with its answer had arrived
    step    the record it led to; None where it led to none
    """

    op: str
    asked: float
    came: float
    value: Mapping[str, Any] | None = None
    step: Mapping[str, Any] | None = None
    error: tuple[str, str] | None = None

    @property
    def seconds(self) -> float:
        """From the press to the answer."""
        return self.came - self.asked


@dataclass(slots=True)
class _Open:
    op: str
    asked: float
    future: asyncio.Future[Answer]


class Page:
    """A page in a tab. `failure` is set where the connection or the page broke without being asked to."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.mount = f"load{next(_names)}"
        self.steps: list[Mapping[str, Any]] = []
        self.session: Mapping[str, Any] | None = None
        self.failure: Exception | None = None
        self.frame_bytes: list[int] = []
        self.ready = asyncio.Event()  # a first frame has come: commands can be said
        self._epoch = -1
        self._ack = 0
        self._next = 1
        self._polls = 0
        self._log: list[dict[str, Any]] = []
        self._open: dict[int, _Open] = {}
        self._wanted = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    # --- the life of a page -------------------------------------------------------------------------------

    async def start(self) -> None:
        """Ask for the page and listen, until `stop`."""
        state = self._value() if self._next > 1 else None
        await self.connection.run_app(state)
        self._tasks = [asyncio.create_task(self._listen()), asyncio.create_task(self._speak())]

    async def stop(self) -> None:
        """End both tasks; the connection is left as it is."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def move_to(self, connection: Connection) -> None:
        """Go on over another connection: the page stayed open while the network was gone."""
        await self.stop()
        self.connection = connection
        self.failure = None
        await self.start()

    def send(self, op: str, *, asked: float | None = None, **args: Any) -> asyncio.Future[Answer]:
        """Put a command into the log. The answer comes in its own time."""
        n, self._next = self._next, self._next + 1
        opened = _Open(op, time.perf_counter() if asked is None else asked, asyncio.get_running_loop().create_future())
        self._log.append({"n": n, "op": op, **args})
        self._open[n] = opened
        self._wanted.set()
        return opened.future

    def pending(self, op: str) -> int:
        """Commands of this kind without an answer."""
        return sum(1 for opened in self._open.values() if opened.op == op)

    # --- up -----------------------------------------------------------------------------------------------

    def _value(self) -> dict[str, Any]:
        have = {"epoch": self._epoch, "steps": len(self.steps)}
        return {"mount": self.mount, "have": have, "seen": self._ack, "poll": self._polls, "cmds": self._log}

    async def _speak(self) -> None:
        await self.ready.wait()
        while True:
            try:
                await asyncio.wait_for(self._wanted.wait(), RESEND_AFTER_S if self._log else None)
            except TimeoutError:
                self._polls += 1
            self._wanted.clear()
            try:
                await self.connection.say(self._value())
            except ConnectionClosed as closed:
                self.failure = self.failure or closed
                return

    def _poll(self) -> None:
        self._polls += 1
        self._wanted.set()

    # --- down ---------------------------------------------------------------------------------------------

    async def _listen(self) -> None:
        try:
            async for frame in self.connection.frames():
                self._take(frame, time.perf_counter())
        except Exception as error:  # whoever steps this page looks at `failure`
            self.failure = error
        else:
            self.failure = ConnectionError("the server closed the connection")

    def _take(self, frame: bytes, came: float) -> None:
        header: dict[str, Any] = unpack(frame)[0]
        self.ready.set()
        self.frame_bytes.append(len(frame))
        self.session = header["session"]
        self._merge(header)
        if header["mount"] != self.mount:
            return
        if header["busy"]:
            asyncio.get_running_loop().call_later(DRAW_S, self._poll)
        self._acknowledge(header, came)

    def _merge(self, header: Mapping[str, Any]) -> None:
        if self.session is None:
            self._epoch, self.steps = -1, []
            return
        known = self._epoch in (self.session["epoch"], header["keeps"])
        held = self.steps if known else []
        start = header["steps_from"]
        if start > len(held):  # a gap: ask for everything
            self._epoch, self.steps = -1, []
            self._poll()
            return
        self._epoch, self.steps = self.session["epoch"], [*held[:start], *header["steps"]]

    def _acknowledge(self, header: Mapping[str, Any], came: float) -> None:
        self._ack = max(self._ack, header["ack"])
        self._log = [command for command in self._log if command["n"] > self._ack]
        for answer in header["answers"]:
            opened = self._open.pop(answer["n"], None)
            if opened is not None and not opened.future.done():  # done: nobody waits for it any more
                opened.future.set_result(self._answer(opened, answer, came))
        for n in [n for n in self._open if n <= self._ack]:
            lost = self._open.pop(n)
            if not lost.future.done():
                lost.future.set_result(Answer(lost.op, lost.asked, came, error=("AnswerLost", "no answer came")))

    def _answer(self, opened: _Open, answer: Mapping[str, Any], came: float) -> Answer:
        if not answer["ok"]:
            error = (str(answer["error"]["kind"]), str(answer["error"]["message"]))
            return Answer(opened.op, opened.asked, came, error=error)
        value: Mapping[str, Any] = answer["value"]
        index = value.get("step", 0 if opened.op == "prefill" else None)
        step = self.steps[index] if isinstance(index, int) and index < len(self.steps) else None
        return Answer(opened.op, opened.asked, came, value=value, step=step)
