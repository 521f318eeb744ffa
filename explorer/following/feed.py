"""The frames of one leader for all who follow: each is built and encoded once, whoever it goes to.

A follower begins with a snapshot, and then gets what has changed since. Who reads slowly gets the changes that were
kept, or a snapshot again. Nobody who follows costs a forward pass: what is sent was made for the leader.
"""

from __future__ import annotations

import asyncio
from collections import deque

from explorer.live.frame import Json, Planes, pack
from explorer.live.page_frame import PageFrames
from explorer.live.record_payload import JsonObject
from explorer.live.tab import MountLog, Tab
from explorer.workspace.branch import Branch
from explorer.workspace.recipe_json import SavedSession

KEPT = 64  # changes for who is behind


class FollowerFrames(PageFrames):
    """What followers may know of a tab: its run, and not the secret name of its session."""

    patience_s = 2.0  # for attention: a follower cannot ask for it later

    def __init__(self, tab: Tab, name: str) -> None:
        super().__init__(tab, MountLog(), None)
        self._name = name
        self.is_greeted = True

    def _facts(self, branch: Branch, saved: SavedSession, epoch: int) -> JsonObject:
        return {**super()._facts(branch, saved, epoch), "sid": self._name, "url": "", "link_note": ""}

    def _state(self) -> JsonObject:
        state = super()._state()
        return {name: state[name] for name in ("model", "machine", "presets", "examples", "limits", "settings", "play")}


class Feed:
    """What was built for the followers of one tab."""

    def __init__(self, tab: Tab, name: str) -> None:
        self._tab, self._name = tab, name
        self._building = asyncio.Lock()
        self._changes: deque[tuple[int, bytes]] = deque(maxlen=KEPT)
        self._frames = FollowerFrames(tab, name)
        self._snapshot: tuple[int, bytes] | None = None
        self.newest = 1  # number of the newest frame; 1 is a snapshot

    async def update(self, **said: Json) -> None:
        """Build what has changed, and what is said beside it, if anything."""
        async with self._building:
            await self._update(said)

    async def _update(self, said: dict[str, Json]) -> None:
        frame = await self._frames.build(self.newest + 1, said)
        if frame is not None:
            self._keep(frame)

    async def add(self, header: JsonObject, planes: Planes) -> None:
        """A frame with arrays that is no change of the run."""
        async with self._building:
            self._keep(pack({"frame": self.newest + 1, **header}, planes))

    def _keep(self, frame: bytes) -> None:
        self.newest += 1
        self._changes.append((self.newest, frame))

    def since(self, number: int) -> list[bytes] | None:
        """The frames after this one; None where some of them are gone."""
        missing = [frame for n, frame in self._changes if n > number]
        return missing if len(missing) == self.newest - number else None

    async def snapshot(self, **said: Json) -> tuple[int, bytes]:
        """All there is, and the number of the newest change in it. Encoded once between two changes."""
        async with self._building:
            await self._update({})
            if self._snapshot is None or self._snapshot[0] != self.newest:
                frame = await FollowerFrames(self._tab, self._name).build(1, {"how": "following", **said})
                assert frame is not None, "a snapshot says something"
                self._snapshot = (self.newest, frame)
            return self._snapshot
