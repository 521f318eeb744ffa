"""What the engine thread is asked for: one decode step, or work in pieces; and the queues they wait in."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from engine.decode.session_state import SessionState
from engine.errors import EngineStopped
from engine.records import StepRecord

Pieces = Generator[None, None, Any]
Work = Callable[[], Pieces]


def never() -> bool:
    """What is_brief says of long work."""
    return False


def always() -> bool:
    """What is_brief says of work that needs no cache and no forward."""
    return True


@dataclass(slots=True, eq=False)
class StepRequest:
    """One decode step of one session.

    before   raises where the step cannot be taken
    after    publishes the session before the Future resolves
    restore  fills a released cache again
    owner    who pays for a rebuild
    auto     autoplay asks: clicks go first
    solo     runs in a forward of its own
    """

    state: SessionState
    asked_ms: float
    before: Callable[[], None]
    after: Callable[[], None]
    restore: Work
    owner: str
    auto: bool = False
    solo: bool = False
    future: Future[StepRecord] = field(default_factory=Future)


@dataclass(slots=True, eq=False)
class WorkRequest:
    """Anything else: a generator that yields between pieces.

    owner          whose time it takes: a tab's, over all its sessions
    step           the step that this makes possible, and that fails with it
    is_brief       whether it is one short piece as things stand; asked on the engine thread
    is_look        a study or a check, on caches of its own or a replay of many pieces: one of them runs at a time
    was_restarted  memory ran out once; it is not tried a third time
    """

    start: Work
    owner: str
    step: StepRequest | None = None
    is_brief: Callable[[], bool] = never
    is_look: bool = False
    future: Future[Any] = field(default_factory=Future)
    running: Pieces | None = None
    was_restarted: bool = False


Request = StepRequest | WorkRequest


class RequestQueues:
    """One queue per session that waits. Any thread puts, the engine thread takes."""

    def __init__(self) -> None:
        self._is_closed = False
        self._queues: dict[str, deque[Request]] = {}
        self._wake = threading.Condition()

    def put(self, key: str, request: Request) -> None:
        """Add a request behind the others of its session."""
        self.put_together({key: request})

    def put_together(self, requests: Mapping[str, Request]) -> None:
        """Add a request of each of several sessions, with no turn of the engine between them."""
        with self._wake:
            if self._is_closed:
                raise EngineStopped("The engine has stopped. Reload the page to start it again.")
            for key, request in requests.items():
                self._queues.setdefault(key, deque()).append(request)
            self._wake.notify()

    def wait(self, seconds: float) -> bool:
        """Sleep until somebody waits, the queues are closed, or the time is up. False when they are closed."""
        with self._wake:
            if not self._queues and not self._is_closed:
                self._wake.wait(seconds)
            return not self._is_closed

    def heads(self) -> dict[str, Request]:
        """The oldest request of every session that waits, in the order in which they began to wait."""
        with self._wake:
            for queue in self._queues.values():
                _put_restore_first(queue)
            return {key: queue[0] for key, queue in self._queues.items()}

    def pop(self, key: str) -> None:
        """Drop the oldest request of a session: it is done."""
        with self._wake:
            queue = self._queues[key]
            queue.popleft()
            if not queue:
                del self._queues[key]

    def close(self) -> None:
        """Take no more requests."""
        with self._wake:
            self._is_closed = True
            self._wake.notify()

    def drain(self) -> list[Request]:
        """Everything that still waits; the queues are empty afterwards."""
        with self._wake:
            waiting = [request for queue in self._queues.values() for request in queue]
            self._queues.clear()
            return waiting

    def waiting(self) -> frozenset[str]:
        """Sessions with a request that is not done."""
        with self._wake:
            return frozenset(self._queues)

    def num_looks(self, owner: str) -> int:
        """Looks of one owner, under way or waiting."""
        with self._wake:
            requests = [request for queue in self._queues.values() for request in queue]
        return sum(isinstance(asked, WorkRequest) and asked.is_look and asked.owner == owner for asked in requests)

    def __len__(self) -> int:
        with self._wake:
            return sum(len(queue) for queue in self._queues.values())


def at_once(call: Callable[[], Any]) -> Work:
    """Work that is done in one piece."""

    def work() -> Pieces:
        yield from ()
        return call()

    return work


def _put_restore_first(queue: deque[Request]) -> None:
    """A step of a session whose cache was released waits until it is filled again."""
    head = queue[0]
    if isinstance(head, StepRequest) and head.state.is_released:
        queue.appendleft(WorkRequest(head.restore, head.owner, head))
