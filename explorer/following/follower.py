"""One follower's line: what the leader's feed has, and nothing up but receipts and answers to the leader's question."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from explorer.following.leading import Follower, Leading
from explorer.live.frame import Json, Planes, pack
from explorer.live.messages import Command, Message
from explorer.operations.checked import BadCommand

FOLLOWS = "You follow somebody's run, so only its leader changes it. Leave with your own copy to go on by yourself."

Send = Callable[[bytes], Awaitable[None]]


class FollowerLine:
    """Sends one follower what there is, as fast as they read it."""

    def __init__(self, leading: Leading, send: Send, owner: str) -> None:
        self._leading, self._send, self._owner = leading, send, owner
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
            self.obey(message.command)

    def obey(self, command: Command) -> None:
        """Pass on an answer; every other command is refused. One that comes again is not done again."""
        if command.n <= self._ack:
            return
        said: dict[str, Json] = {"ok": False, "error": {"kind": "Follows", "message": FOLLOWS}}
        if command.op == "answer":
            try:
                self._leading.answer(self._owner, command.args.get("answer"))
                said = {"ok": True, "value": {}}
            except BadCommand as error:
                said = {"ok": False, "error": {"kind": "BadCommand", "message": str(error)}}
        self._answers.append({"n": command.n, "op": command.op, **said})
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
            leading = self._leading
            look, follow, question = leading.look.json(), leading.follow_json(), leading.question_json()
            follower.sent, frame = await feed.snapshot(look=look, follow=follow, question=question)
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
