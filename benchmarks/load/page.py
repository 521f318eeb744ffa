"""One page instance: its log of commands and the records it holds, as live_line.js and store.js keep them."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from websockets.exceptions import ConnectionClosed

from benchmarks.load.connection import Connection
from explorer.live.frame import unpack
from explorer.live.messages import VERSION

DRAW_S = 0.016  # until a browser has drawn a frame

Record = Mapping[str, Any]

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
    step: Record | None = None
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
    """A page in a tab.

    session   what the server says of the run on screen; None: there is none
    on_step   called with each record that comes, and when
    failure   set where the connection or the page broke without being asked to
    """

    def __init__(self, connection: Connection, remembered: Mapping[str, Any] | None = None) -> None:
        self.connection = connection
        self.mount = f"load{next(_names)}"
        self.steps: list[Record] = []
        self.session: dict[str, Any] | None = None
        self.plays = False
        self.on_step: Callable[[Record, float], None] = lambda *_: None
        self.failure: Exception | None = None
        self.frame_bytes: list[int] = []
        self._remembered = remembered
        self._epoch: int | None = None
        self._ack = 0
        self._next = 1
        self._log: list[dict[str, Any]] = []
        self._open: dict[int, _Open] = {}
        self._says: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
        self._how: asyncio.Future[str] | None = None
        self._tasks: list[asyncio.Task[None]] = []

    # --- the life of a page -------------------------------------------------------------------------------

    async def start(self) -> str:
        """Open the line and listen, until `stop`. How the session began, once it has. Raises what broke before."""
        how: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._how, self._says = how, asyncio.Queue()
        self._says.put_nowait(self._opening())
        self._tasks = [asyncio.create_task(self._listen()), asyncio.create_task(self._speak())]
        return await how

    async def stop(self) -> None:
        """End both tasks; the connection is left as it is."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def move_to(self, connection: Connection) -> str:
        """Go on over another connection: the page stayed open while the network, or the server, was gone."""
        await self.stop()
        self.connection = connection
        self.failure, self.plays = None, False
        return await self.start()

    def send(self, op: str, *, asked: float | None = None, **args: Any) -> asyncio.Future[Answer]:
        """Put a command into the log. The answer comes in its own time."""
        n, self._next = self._next, self._next + 1
        opened = _Open(op, time.perf_counter() if asked is None else asked, asyncio.get_running_loop().create_future())
        command = {"n": n, "op": op, "args": args}
        self._log.append(command)
        self._open[n] = opened
        self._says.put_nowait({**command, "seen": self._ack})
        return opened.future

    # --- up -----------------------------------------------------------------------------------------------

    def _opening(self) -> dict[str, Any]:
        known = self.session or self._remembered
        return {
            "loupe": VERSION,
            "owner": self.connection.owner,
            "mount": self.mount,
            "query": "",
            "session": {"sid": known["sid"], "recipe": known["recipe"], "solo": False} if known else None,
            "have": None if self._epoch is None else {"epoch": self._epoch, "steps": len(self.steps)},
            "seen": self._ack,
            "commands": list(self._log),
        }

    async def _speak(self) -> None:
        try:
            while True:
                await self.connection.say(await self._says.get())
        except ConnectionClosed:  # `_listen` says why
            return

    # --- down ---------------------------------------------------------------------------------------------

    async def _listen(self) -> None:
        try:
            async for frame in self.connection.frames():
                self._take(frame, time.perf_counter())
            raise ConnectionError("the server closed the connection")
        except Exception as error:  # whoever steps this page looks at `failure`
            self.failure = error
            if self._how is not None and not self._how.done():
                self._how.set_exception(error)

    def _take(self, frame: bytes, came: float) -> None:
        header: dict[str, Any] = unpack(frame)[0]
        self.frame_bytes.append(len(frame))
        self.plays = header.get("play", {"on": self.plays})["on"]
        if header.get("failed"):
            raise ConnectionError(f"no model: {header['failed']}")
        if "session" in header:
            self._take_session(header)
        for record in header.get("steps", ()):
            self.on_step(record, came)
        self._acknowledge(header, came)
        if self.plays:
            drawn = {"drawn": header["frame"]}
            asyncio.get_running_loop().call_later(DRAW_S, self._says.put_nowait, drawn)
        if "how" in header and self._how is not None and not self._how.done():
            self._how.set_result(header["how"])

    def _take_session(self, header: Mapping[str, Any]) -> None:
        session, held = header["session"], self.session
        self.session = session
        if session is None:
            self._epoch, self.steps = None, []
            return
        recipe = session["recipe"]
        if "chosen_from" in recipe:  # what the frame left out, this page has
            assert held is not None, "a frame that leaves something out goes on from an earlier one"
            known, start = held["recipe"], recipe.pop("chosen_from")
            recipe["chosen_ids"] = [*known["chosen_ids"][:start], *recipe["chosen_ids"]]
            recipe.update({name: known[name] for name in ("prompt", "prompt_ids", "roles")})
        if "steps" in header:
            self.steps = self._merged(header, session["epoch"])
        self._epoch = session["epoch"]

    def _merged(self, header: Mapping[str, Any], epoch: int) -> list[Record]:
        held: Sequence[Record] = self.steps if self._epoch in (epoch, header["keeps"]) else ()
        start = header["steps_from"]
        if start > len(held):
            raise ConnectionError(f"a frame goes on from step {start}, and the page holds {len(held)}")
        return [*held[:start], *header["steps"]]

    def _acknowledge(self, header: Mapping[str, Any], came: float) -> None:
        self._ack = max(self._ack, header.get("ack", 0))
        self._log = [command for command in self._log if command["n"] > self._ack]
        for answer in header.get("answers", ()):
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
