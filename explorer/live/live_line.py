"""The live line: the one WebSocket over which a browser tab and the decode loop speak (docs/live-line.md).

Three things go on at a time on each connection: messages are read, the tab is found and given its commands, frames are
written. At most one frame waits for a slow reader; what happens meanwhile goes into the next. Whatever ends one of the
three ends the connection, and nothing else.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import parse_qs

from starlette.websockets import WebSocket, WebSocketDisconnect

from explorer.following.follower import FollowerLine
from explorer.following.leading import Leading
from explorer.gate.allowance import Allowance
from explorer.gate.sizes import MOST_BYTES_IN
from explorer.hosting.connections import HEADER
from explorer.hosting.limits import NotHere
from explorer.hosting.runtime import Runtime, runtime
from explorer.live import messages
from explorer.live.commands import Outcome
from explorer.live.entrance import enter
from explorer.live.frame import Json, Planes, pack
from explorer.live.lines import Line
from explorer.live.messages import Message, Opening, OtherVersion
from explorer.live.page_frame import PageFrames
from explorer.live.tab import MountLog, OutOfOrder, Tab
from explorer.operations.checked import BadCommand

log = logging.getLogger(__name__)

ROUTE = "live-line"

BAD_MESSAGE, OTHER_VERSION, OUT_OF_ORDER, REPLACED, NO_ROOM, NOT_READ = range(4000, 4006)
TOO_BIG = 1009
LONGEST_REASON = 120  # bytes of a close frame

NO_LEAD = "Nobody leads under this code now. Check it, or ask for a new one; this page is your own meanwhile."
TOO_MANY_CODES = "Too many wrong codes came from your network. Wait a minute, then reload this page."
OPENING_S = 10.0  # a connection that says nothing is not kept
READING_S = 60.0  # nor one that takes longer to read a frame
MESSAGES_A_S, MESSAGES_AT_ONCE = 60.0, 300.0
BYTES_A_S, BYTES_AT_ONCE = 1_000_000.0, 4_000_000.0


class Ended(Exception):
    """The connection is over. The code is None where the page has closed it or is gone."""

    def __init__(self, code: int | None = None, reason: str = "") -> None:
        super().__init__(reason)
        self.code, self.reason = code, reason


async def live_line(websocket: WebSocket) -> None:
    """One connection, from its handshake to its end."""
    await Connection(websocket, runtime()).serve()


@dataclass(slots=True)
class Joined:
    """The tab that a connection has come to."""

    tab: Tab
    log: MountLog
    frames: PageFrames


class Connection:
    """One page's line to its tab."""

    def __init__(self, websocket: WebSocket, there: Runtime) -> None:
        self._websocket, self._there = websocket, there
        self._address = websocket.client.host if websocket.client else ""
        self._name = websocket.headers.get(HEADER)
        self._inbox: asyncio.Queue[Message] = asyncio.Queue(messages.MOST_COMMANDS)
        self._allowances = Allowance(MESSAGES_A_S, MESSAGES_AT_ONCE), Allowance(BYTES_A_S, BYTES_AT_ONCE)
        self._said: dict[str, Json] = {}
        self._news = asyncio.Event()
        self._replaced = asyncio.Event()
        self._joined: Joined | None = None
        self._follows: FollowerLine | None = None
        self._frames = 0

    async def serve(self) -> None:
        """Until either side ends it."""
        await self._websocket.accept()
        ended = Ended()
        try:
            opening = await self._opening()
            line = Line(opening.owner, self._address, self._replaced.set)
            if not self._there.lines.has_room(self._address):
                raise Ended(NO_ROOM, "Too many pages are open from your network. Close one, and reload this one.")
            self._there.lines.open(line)
            try:
                await self._speak(opening)
            finally:
                self._there.lines.close(line)
        except Ended as end:
            ended = end
        except Exception:
            log.exception("a live line failed")
            ended = Ended(1011, "Something went wrong inside Loupe; the server's log has the details.")
        finally:
            self._leave()
            await self._close(ended)

    async def _speak(self, opening: Opening) -> None:
        """Read, obey and write, until one of them ends."""
        leading = self._wanted_lead(opening)
        if leading is None:
            parts = (self._read(), self._obey(opening), self._write(), self._until_replaced())
        else:
            line = self._follows = FollowerLine(leading, self._send, opening.owner)
            parts = (self._read(), self._follow(line, opening), line.write(), self._until_replaced())
        tasks = [asyncio.create_task(part) for part in parts]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for task in done:
            task.result()

    # --- up -----------------------------------------------------------------------------------------------

    async def _opening(self) -> Opening:
        try:
            async with asyncio.timeout(OPENING_S):
                text = await self._text()
        except TimeoutError:
            raise Ended(BAD_MESSAGE, "This connection said nothing.") from None
        try:
            return messages.read_opening(text)
        except OtherVersion as error:
            raise Ended(OTHER_VERSION, str(error)) from error
        except BadCommand as error:
            raise self._bad(error) from error

    async def _read(self) -> None:
        while True:
            try:
                message = messages.read_message(await self._text())
            except BadCommand as error:
                raise self._bad(error) from error
            if message.beat is not None:
                (self._follows.beat if self._follows else self._say_beat)(message.beat)
            else:
                await self._inbox.put(message)

    def _say_beat(self, number: int) -> None:
        self._say(beat=number)

    def _wanted_lead(self, opening: Opening) -> Leading | None:
        """The lead that the page's address asks for. A code that is none is said, and the page is one's own then."""
        code = (parse_qs(opening.query).get("follow") or [""])[0]
        if not code:
            return None
        waits_s = self._there.follow_attempts.wait_s(self._address)
        found = None if waits_s else self._there.leads.find(code)
        if found is None:
            if not waits_s:
                self._there.follow_attempts.failed(self._address)
            self._say(notice={"kind": "NoLead", "message": NO_LEAD if not waits_s else TOO_MANY_CODES})
        return found

    async def _follow(self, line: FollowerLine, opening: Opening) -> None:
        for command in opening.commands:
            line.obey(command)
        while True:
            line.take(await self._inbox.get())

    async def _text(self) -> str:
        """The next message, once this connection has allowance for it: until then nothing more is read."""
        event = await self._websocket.receive()
        if event["type"] != "websocket.receive":
            raise Ended
        text: str | None = event.get("text")
        if text is None:
            raise Ended(BAD_MESSAGE, "Messages to Loupe are text.")
        if len(text) > MOST_BYTES_IN:
            raise Ended(TOO_BIG, f"A message has at most {MOST_BYTES_IN:,} bytes.")
        count, size = self._allowances
        await asyncio.sleep(max(count.wait_s(1), size.wait_s(len(text))))
        return text

    def _bad(self, error: BadCommand) -> Ended:
        log.warning("from %s: a message that cannot be read: %s", self._address, error)
        return Ended(BAD_MESSAGE, str(error))

    async def _obey(self, opening: Opening) -> None:
        try:
            entered = await enter(self._there, opening, self._name, self._address, lambda said: self._say(**said))
        except NotHere as error:
            raise Ended(NO_ROOM, str(error)) from error
        joined = self._join(entered.tab, opening)
        joined.tab.greet(entered.greeting, lambda outcome: self._greeted(joined, outcome, entered.is_copy))
        for command in opening.commands:
            await self._take(joined, Message(command))
        while True:
            await self._take(joined, await self._inbox.get())

    def _greeted(self, joined: Joined, outcome: Outcome, is_copy: bool) -> None:
        joined.frames.is_greeted = True
        if outcome.value is None:
            kind, message = outcome.error or ("", "")
            self._say(how="new", notice={"kind": kind, "message": message})
            return
        how = outcome.value.render(Planes())["how"]
        self._say(how="copied" if is_copy and how == "rebuilt" else how)

    async def _take(self, joined: Joined, message: Message) -> None:
        if message.seen is not None:
            joined.log.forget_seen(message.seen)
        if message.drawn is not None and joined.frames.are_on_screen(message.drawn):
            joined.tab.autoplay.drawn()
        if message.look is not None and (leading := self._there.leads.of(joined.tab)) is not None:
            leading.tell_look(message.look)
        if message.command is None:
            return
        await joined.tab.room()
        try:
            joined.tab.take(joined.log, message.command)
        except OutOfOrder as error:
            raise Ended(OUT_OF_ORDER, str(error)) from error

    def _join(self, tab: Tab, opening: Opening) -> Joined:
        first = opening.commands[0].n - 1 if opening.commands else opening.seen
        record = tab.log_of(opening.mount, first)
        record.forget_seen(opening.seen)
        self._joined = Joined(tab, record, PageFrames(tab, record, opening.have))
        tab.on_change = self._news.set
        if tab.lead is not None:
            tab.lead.here()
        return self._joined

    async def _until_replaced(self) -> None:
        await self._replaced.wait()
        raise Ended(REPLACED, "This tab was opened again. Go on there, or reload this page.")

    # --- down ---------------------------------------------------------------------------------------------

    def _say(self, **said: Json) -> None:
        """Put something into the next frame."""
        self._said.update(said)
        self._news.set()

    async def _write(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            frame = await self._frame()
            if frame is None:
                continue
            self._frames += 1
            await self._send(frame)

    async def _send(self, frame: bytes) -> None:
        try:
            async with asyncio.timeout(READING_S):
                await self._websocket.send_bytes(frame)
        except TimeoutError:
            raise Ended(NOT_READ, "This page read nothing for a minute.") from None
        except (WebSocketDisconnect, RuntimeError):  # it was closed between two frames
            raise Ended from None

    async def _frame(self) -> bytes | None:
        said, self._said = self._said, {}
        if self._joined is None:
            return pack({"frame": self._frames + 1, **said}, Planes())
        return await self._joined.frames.build(self._frames + 1, said)

    # --- the end ------------------------------------------------------------------------------------------

    def _leave(self) -> None:
        """Look no more: a run that plays stops, commands that were taken go on."""
        if self._follows is not None:
            self._follows.leave()
        if self._joined is not None and self._joined.tab.on_change == self._news.set:
            self._joined.tab.nobody_looks()

    async def _close(self, ended: Ended) -> None:
        if ended.code is None:
            return
        reason = ended.reason.encode()[:LONGEST_REASON].decode(errors="ignore")
        with suppress(Exception):
            async with asyncio.timeout(1.0):
                await self._websocket.close(ended.code, reason)
