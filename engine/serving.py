"""One turn of the engine thread: ask the scheduler who is next, run the forwards, hand out what came of them.

Nothing that one session asks for may reach another: a forward that fails is tried again session by session,
and whatever a request raises goes into its own Future.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.errors import LoupeError
from engine.faults import as_loupe_error
from engine.measure import now_ms
from engine.records import StepRecord
from engine.requests import Request, RequestQueues, StepRequest, WorkRequest
from engine.scheduler import Scheduler, Waiting
from engine.stepping import Stepper

WORK_MS = 20.0  # of a turn may go to work in pieces; the piece that passes it is finished


class Server:
    """Serves the queues' oldest requests, turn by turn. Lives on the engine thread."""

    def __init__(self, stepper: Stepper, queues: RequestQueues, *, max_batch: int) -> None:
        self.stepper = stepper
        self.queues = queues
        self.scheduler = Scheduler(max_batch)

    def turn(self) -> None:
        """Serve the oldest request of every session at most once."""
        heads = self.queues.heads()
        turn = self.scheduler.plan([_waiting(key, request) for key, request in heads.items()])
        for keys in turn.batches:
            self._step({key: request for key in keys if isinstance(request := heads[key], StepRequest)})
        self._work({key: request for key in turn.work if isinstance(request := heads[key], WorkRequest)})

    def _step(self, batch: dict[str, StepRequest]) -> None:
        """One forward for all that are ready; each gets its own record or its own error."""
        ready = {key: request for key, request in batch.items() if self._may_step(key, request)}
        outcomes = self._forward(list(ready.values())) if ready else []
        for (key, request), outcome in zip(ready.items(), outcomes, strict=True):
            self.queues.pop(key)
            self._settle(request, outcome)

    def _may_step(self, key: str, request: StepRequest) -> bool:
        if not request.future.set_running_or_notify_cancel():
            self.queues.pop(key)
            return False
        try:
            request.before()
        except Exception as error:
            self.queues.pop(key)
            request.future.set_exception(as_loupe_error(error))
            return False
        return True

    def _forward(self, ready: Sequence[StepRequest]) -> list[StepRecord | LoupeError]:
        try:
            return self.stepper.decode([r.state for r in ready], [r.asked_ms for r in ready])
        except Exception as error:
            if len(ready) == 1:
                return [as_loupe_error(error)]
        return [outcome for request in ready for outcome in self._forward([request])]  # whose fault was it?

    def _settle(self, request: StepRequest, outcome: StepRecord | LoupeError) -> None:
        if isinstance(outcome, LoupeError):
            request.future.set_exception(outcome)
            return
        request.after()
        request.future.set_result(outcome)

    def _work(self, works: dict[str, WorkRequest]) -> None:
        """Do one piece for each until the turn's time is up: many looks fit, few prefill chunks."""
        until = now_ms() + WORK_MS
        for key, work in works.items():
            self.scheduler.served([key])
            self._advance(key, work)
            if now_ms() > until:
                return

    def _advance(self, key: str, work: WorkRequest) -> None:
        """Do one piece of long work."""
        if work.running is None and not work.future.set_running_or_notify_cancel():
            self.queues.pop(key)
            return
        try:
            if work.running is None:
                work.running = work.start()
            next(work.running)
        except StopIteration as done:
            self._finish(key, work, done.value)
        except Exception as error:
            self._fail(key, work, as_loupe_error(error))

    def _finish(self, key: str, work: WorkRequest, value: Any) -> None:
        self.queues.pop(key)
        work.future.set_result(value)

    def _fail(self, key: str, work: WorkRequest, error: LoupeError) -> None:
        """Fail the work, and the step that cannot be taken without it."""
        self.queues.pop(key)
        work.future.set_exception(error)
        if work.step is not None:
            self.queues.pop(key)
            if work.step.future.set_running_or_notify_cancel():
                work.step.future.set_exception(error)


def _waiting(key: str, request: Request) -> Waiting:
    if isinstance(request, StepRequest):
        return Waiting(key, "step", request.auto, request.solo)
    return Waiting(key, "work")
