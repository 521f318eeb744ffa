"""One browser tab on the server: its commands in order, each exactly once, also over lost connections.

Everything here happens on the event loop, so nothing needs a lock. A command that was taken runs to its end whether or
not the connection is still there; its answer waits until the page has said that it arrived.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Protocol

from explorer.hosting import disconnect
from explorer.live.autoplay import Autoplay
from explorer.live.commands import CANCELLABLE, Outcome, carry_out
from explorer.live.frame import Json
from explorer.live.histories import Histories
from explorer.live.messages import MOST_COMMANDS, Command
from explorer.operations.checked import BadCommand
from explorer.operations.operation import Args
from explorer.workspace.branch import put_to_sleep
from explorer.workspace.workspace import Workspace

MOST_MOUNTS = 8  # page instances of one tab that are remembered


class OutOfOrder(BadCommand):
    """A command came before the one that has its turn."""


@dataclass(slots=True)
class MountLog:
    """One page instance.

    taken    commands up to this number have come
    done     those up to this number are done
    answers  what the page may not have got yet, by number: the command's name and what became of it
    """

    taken: int = 0
    done: int = 0
    answers: dict[int, tuple[str, Outcome]] = field(default_factory=dict)

    def forget_seen(self, seen: int) -> None:
        """Answers up to this number have arrived."""
        for n in [n for n in self.answers if n <= seen]:
            del self.answers[n]


@dataclass(slots=True)
class Work:
    """One command in its turn. `done` is called with what became of it."""

    op: str
    args: Args
    done: Callable[[Outcome], None]


class Lead(Protocol):
    """What a tab knows of leading a class (explorer/following/)."""

    def json(self) -> dict[str, Json]:
        """What the leader's page shows of it."""
        ...

    def here(self) -> None:
        """The leader's page is there."""
        ...

    def gone(self) -> None:
        """It is not."""
        ...


def _nobody() -> None:
    """Nobody looks."""


class Tab:
    """The commands of one tab.

    address    the network address it was opened from
    on_change  called when there is something new to show; set by the connection that looks
    watchers   called then too, whoever looks
    own        commands that the tab carries out itself, beside play and pause
    lead       how this tab leads others; None: it does not
    """

    def __init__(self, workspace: Workspace, clock: Callable[[], float] = time.monotonic, address: str = "") -> None:
        self.workspace = workspace
        self.address = address
        self.last_used = clock()
        self.histories = Histories()
        self.autoplay = Autoplay(lambda: self.perform("step", {"auto": True}), self._is_over, self.changed)
        self.on_change: Callable[[], None] = _nobody
        self.watchers: set[Callable[[], None]] = set()
        self.own: Mapping[str, Callable[[Args], Outcome]] = {}
        self.lead: Lead | None = None
        self.under_way: Work | None = None
        self.takes_long = False  # the command under way is worth a word
        self._room = asyncio.Event()
        self._room.set()
        self._clock = clock
        self._queue: deque[Work] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._mounts: OrderedDict[str, MountLog] = OrderedDict()
        self.is_closed = False
        self._parted = False

    @property
    def sid(self) -> str:
        """The tab's unguessable name."""
        return self.workspace.sid

    def log_of(self, mount: str, taken: int = 0) -> MountLog:
        """A page instance; one that is new here begins after the commands it has had answers for."""
        if mount not in self._mounts:
            self._mounts[mount] = MountLog(taken, taken)
            while len(self._mounts) > MOST_MOUNTS:
                self._mounts.popitem(last=False)
        self._mounts.move_to_end(mount)
        return self._mounts[mount]

    # --- commands -----------------------------------------------------------------------------------------

    def take(self, log: MountLog, command: Command) -> None:
        """Let a command have its turn; one that came before is not run again. Raises OutOfOrder."""
        self._touch()
        if command.n <= log.taken:
            return
        if command.n != log.taken + 1:
            raise OutOfOrder(f"command {command.n} came after {log.taken}.")
        log.taken = command.n
        if command.op == "stop" and self.under_way is not None and self.under_way.op in CANCELLABLE:
            self.workspace.activity.cancel()
        self._queue_up(Work(command.op, command.args, lambda outcome: self._answer(log, command, outcome)))

    def greet(self, args: Args, done: Callable[[Outcome], None]) -> None:
        """The first thing for every connection: go on with what is here, rebuild it, or do what the link says."""
        self._touch()
        self._queue_up(Work("hello", args, done))

    async def perform(self, op: str, args: Args) -> Outcome:
        """A command that no page gave a number: of the server itself, or of a lab."""
        self._touch()
        outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._queue_up(Work(op, args, lambda found: None if outcome.done() else outcome.set_result(found)))
        return await outcome

    async def room(self) -> None:
        """Wait until fewer than the most commands wait for their turn."""
        await self._room.wait()

    def nobody_looks(self) -> None:
        """The connection is gone. Play ends; commands that were taken go on."""
        self.on_change = _nobody
        self.autoplay.pause()
        if self.lead is not None:
            self.lead.gone()

    def changed(self) -> None:
        """There is something new to show."""
        self.on_change()
        for watch in tuple(self.watchers):
            watch()

    def _queue_up(self, work: Work) -> None:
        self._queue.append(work)
        if len(self._queue) >= MOST_COMMANDS:
            self._room.clear()
        if self._worker is None:
            self._worker = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        try:
            while self._queue:
                work = self._queue.popleft()
                self._room.set()
                self.under_way, self.takes_long = work, False
                outcome = await self._carry_out(work)
                work.done(outcome)
                self.under_way, self.takes_long = None, False
                self.last_used = self._clock()
                self.changed()
        finally:
            self._worker = self.under_way = None

    async def _carry_out(self, work: Work) -> Outcome:
        if work.op in ("play", "pause"):
            return self.autoplay.obey(work.op, work.args)
        if work.op in self.own:
            return self.own[work.op](work.args)
        if work.op != "stop":
            self.workspace.activity.cancelled = False
        return await carry_out(self.workspace, work.op, work.args, self._still_busy)

    def _is_over(self) -> bool:
        branch = self.workspace.active
        return branch is None or not branch.records or branch.records[-1].finish_reason is not None

    def _answer(self, log: MountLog, command: Command, outcome: Outcome) -> None:
        log.done = max(log.done, command.n)
        log.answers[command.n] = command.op, outcome

    def _still_busy(self) -> None:
        self.takes_long = True
        self.changed()

    def _touch(self) -> None:
        self.last_used = self._clock()
        if self._parted:  # whoever was thought gone is not: the run goes on where it stood
            self._parted = False
            disconnect.resume_run(self.workspace.active)

    # --- leases -------------------------------------------------------------------------------------------

    def sleep(self) -> None:
        """Free tensors; recipes and records stay, and the next touch rebuilds the cache.

        Asked for and not waited for: the engine does it before whatever is asked for next.
        """
        self._cancel()
        for branch in self.workspace.branches:
            put_to_sleep(branch.session)

    def part(self) -> None:
        """Nobody is there any more: the run on screen ends, and every cache is freed."""
        self._parted = True
        self.autoplay.pause()
        self._drop_waiting()
        self.workspace.shared = None  # whoever is gone cannot take it back
        disconnect.stop_run(self.workspace.active)  # the engine keeps the order: stopped first, then freed
        self.sleep()

    def close(self) -> Sequence[Future[None]]:
        """Give everything back for good. The Futures say when the engine has done so."""
        self.is_closed = True
        self.autoplay.pause()
        self._drop_waiting()
        self._cancel()
        if self._worker is not None:
            self._worker.cancel()
        return self.workspace.close()

    def _drop_waiting(self) -> None:
        """What waits for its turn is answered, and not done: nobody would see it."""
        waiting, self._queue = self._queue, deque()
        for work in waiting:
            work.done(Outcome(error=("NotDone", "The page was gone for too long, so this was not done. Ask again.")))

    def _cancel(self) -> None:
        """End long work that nobody will see, at its next piece."""
        if self.under_way is not None:
            self.workspace.activity.cancel()
