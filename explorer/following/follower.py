"""One follower's line: what the leader's feed has, and nothing up but receipts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from explorer.following.leading import Follower, Leading
from explorer.live.frame import Json, Planes, pack
from explorer.live.messages import Command, Message

FOLLOWS = "You follow somebody's run, so only its leader changes it. Leave with your own copy to go on by yourself."

Send = Callable[[bytes], Awaitable[None]]


class FollowerLine:
    """Sends one follower what there is, as fast as they read it."""

    def __init__(self, leading: Leading, send: Send) -> None:
        self._leading, self._send = leading, send
        self._follower: Follower = leading.join()
        self._answers: list[Json] = []
        self._beat: int | None = None
        self._ack = 0
        self._has_snapshot = False

    def take(self, message: Message) -> None:
        """A receipt, or a command, which is refused: a follower never drives the leader's run."""
        if message.drawn is not None:
            self._leading.drawn(self._follower, message.drawn)
        if message.command is not None:
            self.refuse(message.command)

    def refuse(self, command: Command) -> None:
        """Answer a command with the reason why it is not done."""
        error = {"kind": "Follows", "message": FOLLOWS}
        self._answers.append({"n": command.n, "op": command.op, "ok": False, "error": error})
        self._ack = max(self._ack, command.n)
        self._follower.news.set()

    def beat(self, number: int) -> None:
        """Somebody asks whether anybody is there."""
        self._beat = number
        self._follower.news.set()

    async def write(self) -> None:
        """Until the connection ends."""
        follower = self._follower
        while True:
            await follower.news.wait()
            follower.news.clear()
            await self._run_frames()
            if self._answers or self._beat is not None:
                await self._own_frame()

    async def _run_frames(self) -> None:
        feed, follower = self._leading.feed, self._follower
        missing = feed.since(follower.sent) if self._has_snapshot else None
        if missing is None:
            look, follow = self._leading.look.json(), self._leading.follow_json()
            follower.sent, frame = await feed.snapshot(look=look, follow=follow)
            self._has_snapshot = True
            missing = [frame]
        else:
            follower.sent = feed.newest
        for frame in missing:
            await self._send(frame)

    async def _own_frame(self) -> None:
        answers, self._answers = self._answers, []
        beat, self._beat = self._beat, None
        header: dict[str, Json] = {"frame": self._follower.sent + 1, "ack": self._ack, "answers": answers}
        await self._send(pack(header if beat is None else {**header, "beat": beat}, Planes()))

    def leave(self) -> None:
        """The follower is gone."""
        self._leading.leave(self._follower)
