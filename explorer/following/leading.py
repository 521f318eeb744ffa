"""One tab that leads: its code, what it looks at, who follows, and when it ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from explorer.following.feed import Feed
from explorer.following.look import Look
from explorer.following.question import Asked, Question
from explorer.live.frame import Json, Planes
from explorer.live.record_payload import attention_json
from explorer.live.tab import Tab
from explorer.operations.checked import BadCommand

log = logging.getLogger(__name__)

TELL_EVERY_S = 0.5  # how often the leader is told how many follow


@dataclass(slots=True, eq=False)
class Follower:
    """One who follows. `news` is set when there is something to send; `drawn` is the newest frame on their screen."""

    news: asyncio.Event = field(default_factory=asyncio.Event)
    sent: int = 0
    drawn: int = 0
    is_steady: bool = False  # has drawn a frame at all


class Leading:
    """A lead, from its beginning to its end. Everything here happens on the event loop."""

    def __init__(self, code: str, tab: Tab, clock: Callable[[], float]) -> None:
        self.code, self.tab = code, tab
        self.feed = Feed(tab, f"follows {code}")
        self.look = Look()
        self.ended = ""  # why, in words; empty: it goes on
        self.gone_since: float | None = None  # of the leader's page
        self.asked: Asked | None = None
        self._clock = clock
        self._followers: set[Follower] = set()
        self._said: dict[str, Json] = {}
        self._found: dict[int, NDArray[np.float32]] = {}  # attention of older steps, to be passed on
        self._changed = asyncio.Event()
        self._telling = asyncio.get_running_loop().create_task(self._tell_followers())
        self._due: asyncio.TimerHandle | None = None
        tab.watchers.add(self._changed.set)

    def json(self) -> dict[str, Json]:
        """What the leader sees. Behind is who has not the newest frame on screen."""
        behind = sum(one.drawn < self.feed.newest for one in self._followers)
        question = self.asked.json(shows_answers=True) if self.asked else None
        return {"code": self.code, "followers": len(self._followers), "behind": behind, "question": question}

    def ask(self, question: Question | None) -> None:
        """Ask everybody who follows; None takes the question away."""
        self.asked = None if question is None else Asked(question)
        self._say(question=self.question_json())

    def reveal(self) -> None:
        """Show the answers to everybody. No more are taken. Raises BadCommand where nothing was asked."""
        self._open_question().reveal()
        self._say(question=self.question_json())

    def answer(self, who: str, given: object) -> None:
        """One follower's answer. Raises BadCommand on what is none, or comes too late."""
        self._open_question().answer(who, given)
        self._tell_leader()

    def _open_question(self) -> Asked:
        if self.asked is None:
            raise BadCommand("Nothing is asked just now.")
        return self.asked

    def question_json(self) -> Json:
        """What followers are told of it."""
        return None if self.asked is None else self.asked.json(shows_answers=False)

    def join(self) -> Follower:
        """One more follows."""
        follower = Follower()
        follower.news.set()
        self._followers.add(follower)
        self._tell_leader()
        return follower

    def leave(self, follower: Follower) -> None:
        """One of them is gone."""
        self._followers.discard(follower)
        self._tell_leader()

    def drawn(self, follower: Follower, number: int) -> None:
        """A follower's screen shows this frame. A snapshot is frame 1, and stands for what was sent with it."""
        follower.drawn = max(follower.drawn, number if number > 1 else follower.sent)
        self._tell_leader()

    def here(self) -> None:
        """The leader's page is there."""
        self.gone_since = None

    def gone(self) -> None:
        """The leader's page is not there just now."""
        self.gone_since = self._clock()

    def tell_look(self, look: Look) -> None:
        """The leader looks at something else; of an older step its attention comes along once it is there."""
        if look == self.look:
            return
        if look.step != self.look.step:
            self._bring_attention(look.step)
        self.look = look
        self._say(look=look.json())

    def end(self, why: str) -> None:
        """Tell everybody, and let the tab go."""
        self.ended = why
        self.tab.watchers.discard(self._changed.set)
        self._say(follow=self.follow_json())

    def follow_json(self) -> dict[str, Json]:
        """What a follower is told of the lead."""
        return {"code": self.code, "ended": self.ended or None}

    def _say(self, **said: Json) -> None:
        self._said.update(said)
        self._changed.set()

    async def _tell_followers(self) -> None:
        """Build what is new, once for all, until the lead has ended."""
        while not self.ended or self._said:
            await self._changed.wait()
            self._changed.clear()
            said, self._said = self._said, {}
            try:
                await self.feed.update(**said)
                await self._tell_attention()
            except Exception:
                log.exception("followers of a tab could not be told of a change")
            self._wake()

    async def _tell_attention(self) -> None:
        found, self._found = self._found, {}
        for step, weights in found.items():
            planes = Planes()
            shown: dict[str, Json] = {"step": step, "planes": attention_json(weights, planes)}
            await self.feed.add({"attention_of": shown}, planes)

    def _wake(self) -> None:
        for follower in self._followers:
            follower.news.set()
        self._tell_leader()

    def _tell_leader(self) -> None:
        """Soon: a hundred followers that draw a frame are one number."""
        if self._due is None and not self.ended:
            self._due = asyncio.get_running_loop().call_later(TELL_EVERY_S, self._told)

    def _told(self) -> None:
        self._due = None
        self.tab.on_change()

    def _bring_attention(self, step: int) -> None:
        branch = self.tab.workspace.active
        if branch is None or not 0 <= step < branch.newest:
            return  # the newest step brings its own
        record, loop = branch.records[step], asyncio.get_running_loop()
        asked = asyncio.wrap_future(branch.attention(record), loop=loop)
        asked.add_done_callback(lambda done: self._brought(step, done))

    def _brought(self, step: int, done: asyncio.Future[NDArray[np.float32]]) -> None:
        if not done.cancelled() and done.exception() is None:
            self._found[step] = done.result()
            self._changed.set()
