"""Runs one browser tab's commands: in order, each exactly once, and never for longer than a click should take.

The browser repeats what was not acknowledged, two script threads may speak for one tab at the same moment,
and a prefill takes seconds. So there is one lock, a number up to which commands are done, and at most one
command under way: after 0.3 s the page is told "busy" and asks again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from typing import Any

from engine.errors import EngineFault, LoupeError
from explorer.hosting import disconnect
from explorer.live.wire import Command, Wire
from explorer.operations import inspect_step, measurements, open_session, run_steps, share_with_host, undo
from explorer.operations.operation import Args, Operation, Running, Value
from explorer.workspace.branch import put_to_sleep
from explorer.workspace.workspace import Workspace

log = logging.getLogger(__name__)

PATIENCE_S = 0.3  # how long one call may wait for the engine; twice as long at each later call for the same command,
LONGEST_S = 2.0  # up to this, so that a class whose engine is full does not spend its processors on asking
LONGEST_CANCELLABLE_S = 1.0  # the same for what shows its progress and can be stopped: a stop waits as long
FORGOTTEN = "The server no longer has this session. The page rebuilds it; try again in a moment."
CANCELLABLE = frozenset(
    {"prefill", "hello", "model", "follow_link", "prompt_rows", "undo", "check", "layer_times", "triangle"}
)
MAX_MOUNTS = 8  # page instances of one tab that are remembered

OPERATIONS: dict[str, Operation] = {
    "hello": open_session.hello,
    "model": open_session.model,
    "follow_link": open_session.follow_link,
    "prefill": run_steps.prefill,
    "step": run_steps.step,
    "rewind": run_steps.rewind,
    "fork": run_steps.fork,
    "switch": run_steps.switch,
    "force": run_steps.force,
    "reset": run_steps.reset,
    "undo": undo.undo,
    "stop": run_steps.stop,
    "settings": run_steps.settings,
    "preset": run_steps.preset,
    "select": run_steps.select,
    "what_if": inspect_step.what_if,
    "ask": inspect_step.ask,
    "attention": inspect_step.attention,
    "attention_layer": inspect_step.attention_layer,
    "triangle": inspect_step.triangle,
    "prompt_rows": inspect_step.prompt_rows,
    "check": inspect_step.check,
    "share": share_with_host.share,
    "measure_machine": measurements.measure_machine,
    "layer_times": measurements.layer_times,
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one command: a value, or an error with its kind and a message for people."""

    n: int
    op: str
    value: Value | None = None
    error: tuple[str, str] | None = None


@dataclass(slots=True)
class MountLog:
    """One page instance: commands done so far, and answers it may not have got yet."""

    done: int = 0
    answers: dict[int, Answer] = field(default_factory=dict)


@dataclass(slots=True)
class Job:
    """The command under way.

    calls  how many calls have waited for it in vain
    """

    command: Command
    log: MountLog
    running: Running
    waiting: Future[Any] | None = None
    calls: int = 0

    def patience_s(self, first_s: float) -> float:
        """How long the next call may wait."""
        most = LONGEST_CANCELLABLE_S if self.command.op in CANCELLABLE else LONGEST_S
        return min(most, first_s * float(2**self.calls))


class TabDriver:
    """One browser tab on the server."""

    def __init__(
        self, workspace: Workspace, *, clock: Callable[[], float] = time.monotonic, patience_s: float = PATIENCE_S
    ) -> None:
        self.workspace = workspace
        self.lock = threading.RLock()
        self.wire: Wire | None = None
        self.backlog = False
        self.job: Job | None = None
        self._clock = clock
        self._patience_s = patience_s
        self.last_used = clock()
        self._mounts: OrderedDict[str, MountLog] = OrderedDict()
        self._parted = False

    @property
    def sid(self) -> str:
        """The tab's unguessable name."""
        return self.workspace.sid

    @property
    def log(self) -> MountLog:
        """The page instance that spoke last."""
        return self._mount(self.wire.mount) if self.wire else MountLog()

    def knows(self, mount: str) -> bool:
        """Whether this page instance has spoken to this tab before."""
        return mount in self._mounts

    def receive(self, wire: Wire) -> None:
        """Run what is new in `wire`, as far as its patience allows."""
        with self.lock:
            self.wire, self.last_used = wire, self._clock()
            self._welcome_back()
            if not self.knows(wire.mount) and not any(command.op == "hello" for command in wire.commands):
                self.disown(wire)  # every page begins with a greeting, so this one spoke to a tab that is gone
                return
            log_of_mount = self._mount(wire.mount)
            for n in [n for n in log_of_mount.answers if n <= wire.seen]:
                del log_of_mount.answers[n]
            self._cancel_for_stop(wire, log_of_mount)
            patience_s = self.job.patience_s(self._patience_s) if self.job else self._patience_s
            self.backlog = not self._run(wire, log_of_mount, time.monotonic() + patience_s)

    def disown(self, wire: Wire) -> None:
        """Take in commands meant for a tab that is gone: none is run, each is told so, later ones are welcome."""
        with self.lock:
            self.wire, self.backlog = wire, False
            for command in wire.commands:
                self._finish(command, self._mount(wire.mount), error=("Forgotten", FORGOTTEN))

    def _run(self, wire: Wire, mount: MountLog, deadline: float) -> bool:
        """True where nothing is left to do."""
        if self.job is not None and not self._advance(self.job, deadline):
            return False
        for command in wire.commands:
            if command.n <= mount.done:
                continue
            self.job = self._start(command, mount)
            if self.job is not None and not self._advance(self.job, deadline):
                return False
        return True

    def _start(self, command: Command, mount: MountLog) -> Job | None:
        operation = OPERATIONS.get(command.op)
        if operation is None:
            message = f"The page asked for {command.op!r}, which does not exist. Reload the page."
            self._finish(command, mount, error=("BadCommand", message))
            return None
        if command.op != "stop":
            self.workspace.activity.cancelled = False
        return Job(command, mount, _on_a_running_engine(operation, self.workspace, command.args))

    def _advance(self, job: Job, deadline: float) -> bool:
        """Drive a job until it is done (True) or `deadline` has passed."""
        try:
            while True:
                if job.waiting is not None:
                    wait([job.waiting], timeout=max(0.0, deadline - time.monotonic()))
                    if not job.waiting.done():
                        job.calls += 1
                        return False
                job.waiting = _resume(job)
        except StopIteration as stop:
            self._finish(job.command, job.log, value=stop.value)
        except LoupeError as error:
            self._finish(job.command, job.log, error=(type(error).__name__, self._words(error)))
        except Exception:
            log.exception("the command %r failed", job.command.op)
            message = "Something went wrong inside Loupe; the server's log has the details. The session is as it was."
            self._finish(job.command, job.log, error=("InternalError", message))
        self.job = None
        return True

    def _words(self, error: LoupeError) -> str:
        """What a person reads. What failed inside is for whoever owns the machine, and never for a visitor."""
        detail = error.detail if isinstance(error, EngineFault) and not self.workspace.hosting.is_hosted else ""
        return f"{error} ({detail})" if detail else str(error)

    def _finish(
        self, command: Command, mount: MountLog, *, value: Value | None = None, error: tuple[str, str] | None = None
    ) -> None:
        self.workspace.activity.clear()
        mount.done = max(mount.done, command.n)
        mount.answers[command.n] = Answer(command.n, command.op, value, error)

    def _cancel_for_stop(self, wire: Wire, mount: MountLog) -> None:
        """A stop that waits behind long work ends that work at once, and has done its duty with that."""
        waits = any(c.op == "stop" and c.n > mount.done for c in wire.commands)
        if waits and self.job is not None and self.job.command.op in CANCELLABLE:
            self.workspace.activity.cancel()

    def _mount(self, name: str) -> MountLog:
        if name not in self._mounts:
            self._mounts[name] = MountLog()
            while len(self._mounts) > MAX_MOUNTS:
                self._mounts.popitem(last=False)
        self._mounts.move_to_end(name)
        return self._mounts[name]

    # --- leases -------------------------------------------------------------------------------------------

    def sleep(self) -> bool:
        """Free tensors; recipes and records stay, and the next touch rebuilds the cache. False where a call runs.

        Asked for and not waited for: the engine does it before whatever is asked for next, and one that hangs holds
        up neither this tab's lock nor the only thread that frees.
        """
        if not self.lock.acquire(blocking=False):
            return False
        try:
            self._cancel()
            for branch in self.workspace.branches:
                put_to_sleep(branch.session)
            return True
        finally:
            self.lock.release()

    def part(self) -> bool:
        """Nobody is there any more: the run on screen ends, and every cache is freed. False where a call runs."""
        if not self.lock.acquire(blocking=False):
            return False
        try:
            self._parted = True
            self.workspace.shared = None  # whoever is gone cannot take it back
            disconnect.stop_run(self.workspace.active)  # the engine keeps the order: stopped first, then freed
            return self.sleep()
        finally:
            self.lock.release()

    def _welcome_back(self) -> None:
        """Whoever was thought gone is not: the run goes on where it stood."""
        if self._parted:
            self._parted = False
            disconnect.resume_run(self.workspace.active)

    def close(self) -> list[Future[None]]:
        """Give everything back for good. The Futures say when the engine has done so."""
        with self.lock:
            if self.job is not None:
                self._cancel()
                self.job.running.close()
                self.job = None
            return self.workspace.close()

    def _cancel(self) -> None:
        """End long work that nobody will see, at its next piece."""
        if self.job is not None:
            self.workspace.activity.cancel()


def _on_a_running_engine(operation: Operation, workspace: Workspace, args: Args) -> Running:
    """The operation, once the runs whose engine has ended are rebuilt in the one that replaced it."""
    if any(branch.is_lost for branch in workspace.branches):
        yield from open_session.rebuild_lost(workspace)
    return (yield from operation(workspace, args))


def _resume(job: Job) -> Future[Any]:
    """Hand the awaited result (or its error) to the operation; returns what it waits for next."""
    if job.waiting is None:
        return next(job.running)
    error = job.waiting.exception()
    if error is not None:
        return job.running.throw(error)
    return job.running.send(job.waiting.result())
