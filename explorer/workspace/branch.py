"""One run of a tab: a decode session, where it left another run, and which seeds drew it.

A recipe knows a single seed, but a person may change it on the way; a link needs the seed of every step.
"""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from engine.errors import EngineStopped
from engine.records import StepRecord
from explorer.live.token_payload import TokenList

if TYPE_CHECKING:
    from engine.session import DecodeSession

Attention: TypeAlias = NDArray[np.float32]


def put_to_sleep(session: DecodeSession) -> Future[None] | None:
    """Free a session's tensors, to be rebuilt at the next touch. An engine that has ended has freed them already."""
    try:
        return session.release()
    except EngineStopped:
        return None


def give_up(session: DecodeSession) -> Future[None] | None:
    """End a session that nobody will ask for again: its place goes to others as well."""
    try:
        return session.close()
    except EngineStopped:
        return None


@dataclass(slots=True)
class Branch:
    """One run.

    parent, at  which run it left, and after which step
    """

    id: int
    session: DecodeSession
    tokens: TokenList
    parent: int | None = None
    at: int | None = None

    @property
    def is_lost(self) -> bool:
        """Whether the engine under it has ended: its recipe and records are still here, and can go on in another."""
        return not self.session.engine.is_alive

    @property
    def label(self) -> str:
        """How people call it."""
        return f"Branch {self.id}"

    @property
    def records(self) -> tuple[StepRecord, ...]:
        """One per step."""
        return self.session.records

    @property
    def newest(self) -> int:
        """Index of the last step; -1 where there is none."""
        return len(self.session.records) - 1

    def attention(self, record: StepRecord) -> Future[Attention]:
        """(L, H, K) of a step; of the newest it is there already."""
        return self.session.attention(record.index)
