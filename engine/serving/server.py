"""One turn of the engine thread: ask the scheduler who is next, run the forwards, hand out what came of them.

Nothing that one session asks for may reach another: a forward that fails is tried again session by session,
and whatever a request raises goes into its own Future.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

from engine.decode.stepping import Stepper
from engine.errors import LoupeError, NumericalFailure
from engine.forward.faults import as_loupe_error, is_out_of_memory
from engine.measure.clocks import now_ms
from engine.records import StepRecord
from engine.serving.counters import Meter
from engine.serving.requests import Request, RequestQueues, StepRequest, WorkRequest
from engine.serving.scheduler import Scheduler, Turn, Waiting
from engine.serving.session_table import KVBytes, SessionTable

BRIEF_MS = 20.0  # of a turn may go to what is brief; the rest is first in the next
WORK_MS = 20.0  # of a turn may go to work in pieces; the piece that passes it is finished
STEPS_EVERY_MS = 40.0  # so long a forward of many tokens runs, until between two of its layers those waiting step


class Server:
    """Serves the queues' oldest requests, turn by turn. Lives on the engine thread."""

    def __init__(
        self, stepper: Stepper, queues: RequestQueues, table: SessionTable, meter: Meter, *, max_batch: int
    ) -> None:
        self.stepper = stepper
        self.queues = queues
        self.table = table
        self.meter = meter
        self.scheduler = Scheduler(max_batch)
        self._steps_due_ms = 0.0
        stepper.runner.between_layers = self._let_steps_through

    def turn(self) -> None:
        """Serve the oldest request of every session at most once."""
        heads = self.queues.heads()
        turn = self._steps(heads)
        self._work(heads, turn.work, WORK_MS)
        self._work(heads, turn.study, WORK_MS)
        self.table.scratch.measure()
        self.meter.add(evictions=self.table.keep_within_budget(self.queues.waiting()))

    def _steps(self, heads: Mapping[str, Request]) -> Turn:
        """One token for whoever waits for one, and what is brief."""
        turn = self.scheduler.plan([_waiting(key, request) for key, request in heads.items()])
        for keys in turn.batches:
            self._step({key: request for key in keys if isinstance(request := heads[key], StepRequest)})
        self._work(heads, turn.brief, BRIEF_MS)
        self._steps_due_ms = now_ms() + STEPS_EVERY_MS
        return turn

    def _let_steps_through(self) -> None:
        """In the middle of a long forward: those who do not wait for long work. Never whose forward it is."""
        if now_ms() < self._steps_due_ms:
            return
        heads = self.queues.heads()  # of the session at work, the oldest request is that work
        self._steps({key: request for key, request in heads.items() if _kind(request) in ("step", "brief")})

    def _step(self, batch: dict[str, StepRequest]) -> None:
        """One forward for all that are ready; each gets its own record or its own error."""
        ready = {key: request for key, request in batch.items() if self._may_step(key, request)}
        outcomes = self._forward(list(ready.values())) if ready else []
        for (key, request), outcome in zip(ready.items(), outcomes, strict=True):
            self._settle(key, request, outcome)

    def _may_step(self, key: str, request: StepRequest) -> bool:
        if not request.future.set_running_or_notify_cancel():
            self.queues.pop(key)
            return False
        try:
            request.before()
        except Exception as error:
            self._settle(key, request, error)
            return False
        return True

    def _forward(self, ready: Sequence[StepRequest]) -> list[StepRecord | Exception]:
        """What came of each request, however the forward went. Who lacked memory at any point of it is tried again."""
        outcomes = self._attempt(ready)
        if isinstance(outcomes, Exception):
            if is_out_of_memory(outcomes) and self._shed():
                outcomes = self._attempt(ready)
            if not isinstance(outcomes, Exception):
                return outcomes
            if len(ready) == 1:
                return [outcomes]
            return [outcome for request in ready for outcome in self._forward([request])]  # whose fault was it?
        short = [
            i for i, outcome in enumerate(outcomes) if isinstance(outcome, Exception) and is_out_of_memory(outcome)
        ]
        if short and self._shed():
            for i in short:
                again = self._attempt([ready[i]])
                outcomes[i] = again if isinstance(again, Exception) else again[0]
        return outcomes

    def _attempt(self, ready: Sequence[StepRequest]) -> list[StepRecord | Exception] | Exception:
        try:
            outcomes = self.stepper.decode([r.state for r in ready], [r.asked_ms for r in ready])
        except Exception as error:
            traceback.clear_frames(error.__traceback__)  # they hold the tensors of the forward that failed
            return error
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                traceback.clear_frames(outcome.__traceback__)
        timings = [outcome.timing for outcome in outcomes if isinstance(outcome, StepRecord)]
        self.meter.forward(now_ms(), [timing.wait_ms for timing in timings if timing is not None])
        return outcomes

    def _shed(self) -> bool:
        """Free what nobody waits for. False where there was nothing to free."""
        released = self.table.release_idle(self.queues.waiting())
        shared = self.stepper.prefixes.num_bytes
        self.stepper.prefixes.clear()
        self.meter.add(evictions=released)
        return released > 0 or shared > 0

    def _settle(self, key: str, request: StepRequest, outcome: StepRecord | Exception) -> None:
        self.queues.pop(key)
        if isinstance(outcome, Exception):
            self.meter.add(failures=1)
            if isinstance(outcome, NumericalFailure):
                with suppress(Exception):  # the newest record's reason to stop; what failed is told all the same
                    request.after()
            request.future.set_exception(as_loupe_error(outcome))
            return
        memory = outcome.memory
        self.table.touch(key, KVBytes(memory.kv_live_bytes, memory.kv_reserved_bytes))
        self.meter.add(rebuilt_tokens=outcome.rebuilt_tokens, recovered_tokens=outcome.recovered_tokens)
        try:
            request.after()
        except Exception as error:  # it must not end the turn of everybody else
            request.state.drop_newest()  # nobody was shown it
            request.future.set_exception(as_loupe_error(error))
        else:
            request.future.set_result(outcome)

    def _work(self, heads: Mapping[str, Request], keys: Sequence[str], most_ms: float) -> None:
        """Do one piece for each until the time is up: many looks fit, few prefill chunks."""
        until = now_ms() + most_ms
        for key in keys:
            work = heads[key]
            assert isinstance(work, WorkRequest), "the scheduler tells steps and work apart"
            self.scheduler.served([key])
            self._advance(key, work)
            if now_ms() > until:
                return

    def _advance(self, key: str, work: WorkRequest) -> None:
        """Do one piece of long work."""
        if work.running is None and not work.was_restarted and not work.future.set_running_or_notify_cancel():
            self.queues.pop(key)
            return
        try:
            work.running = work.running or work.start()
            next(work.running)
            self.table.measure(key)
        except StopIteration as done:
            self._finish(key, work, done.value)
        except Exception as error:
            traceback.clear_frames(error.__traceback__)  # they hold caches, and whoever asked keeps the error
            if is_out_of_memory(error) and not work.was_restarted and self._shed():
                work.running, work.was_restarted = None, True  # it moved nothing yet: begin again at the next turn
                return
            self._fail(key, work, as_loupe_error(error))

    def _finish(self, key: str, work: WorkRequest, value: Any) -> None:
        self.queues.pop(key)
        self.table.measure(key)
        if isinstance(value, StepRecord) and value.phase == "prefill" and value.draw.mode != "forced":
            self.meter.add(prefills=1, reused_tokens=value.reused_tokens)
        work.future.set_result(value)

    def _fail(self, key: str, work: WorkRequest, error: LoupeError) -> None:
        """Fail the work, and the step that cannot be taken without it."""
        self.queues.pop(key)
        self.table.measure(key)
        self.meter.add(failures=1)
        work.future.set_exception(error)
        if work.step is not None:
            self.queues.pop(key)
            if work.step.future.set_running_or_notify_cancel():
                work.step.future.set_exception(error)


def _waiting(key: str, request: Request) -> Waiting:
    if isinstance(request, StepRequest):
        return Waiting(key, "step", request.auto, request.solo)
    return Waiting(key, _kind(request))


def _kind(request: Request) -> Literal["step", "brief", "work", "study"]:
    if isinstance(request, StepRequest):
        return "step"
    if request.is_study:
        return "study"
    return "brief" if request.is_brief() else "work"
