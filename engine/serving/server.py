"""One turn of the engine thread: ask the scheduler who is next, run the forwards, hand out what came of them.

Nothing that one session asks for may reach another: a forward that fails is tried again session by session,
and whatever a request raises goes into its own Future.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from engine.decode.stepping import Stepper
from engine.errors import EngineFull, LoupeError, NumericalFailure
from engine.forward.faults import as_loupe_error, is_out_of_memory
from engine.measure.clocks import now_ms
from engine.records import StepRecord
from engine.serving.counters import Meter
from engine.serving.heavy_share import Alternation, SpentTime
from engine.serving.requests import Request, RequestQueues, StepRequest, WorkRequest
from engine.serving.scheduler import Kind, Scheduler, Turn, Waiting
from engine.serving.session_table import KVBytes, SessionTable

BRIEF_MS = 20.0  # of a turn may go to what is brief; the rest is first in the next
WORK_MS = 20.0  # of a turn may go to heavy work; the piece that passes it is finished

NO_ROOM = (
    "This was stopped: it keeps caches of its own, and beside those of everybody's runs they do not fit into what this "
    "engine may hold. The session is as it was. Try again when fewer runs are open, or with a shorter prompt."
)


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
        self.spent = SpentTime()
        self.alternation = Alternation()
        self._at_work: WorkRequest | None = None  # the heavy work of which a piece is under way
        self._since_ms = 0.0  # when that piece began, or those who were let in on it were done
        stepper.runner.between_layers = self._let_steps_through

    def turn(self) -> None:
        """Serve the oldest request of every session at most once."""
        heads = self.queues.heads()
        turn = self._steps(heads)
        if self.alternation.owed_ms <= 0 or not self._quick():
            self._heavy(heads, turn.work)
        self.table.scratch.measure()
        self._keep_within_budget()

    def _steps(self, heads: Mapping[str, Request]) -> Turn:
        """One token for whoever waits for one, and what is brief."""
        began = now_ms()
        turn = self.scheduler.plan([self._waiting(key, request) for key, request in heads.items()])
        for keys in turn.batches:
            self._step({key: request for key in keys if isinstance(request := heads[key], StepRequest)})
        self._brief(heads, turn.brief)
        if turn.batches or turn.brief:
            self.alternation.stepped(now_ms() - began)
        return turn

    def _quick(self) -> dict[str, Request]:
        """What waits and is no heavy work. Never of the session that is at work: its oldest request is that work."""
        heads = self.queues.heads()
        return {
            key: request
            for key, request in heads.items()
            if request is not self._at_work and self._kind(request) in ("step", "brief")
        }

    def _let_steps_through(self) -> None:
        """In the middle of heavy work: those who wait for steps, for as long as they are owed.

        What is brief stops for nobody.
        """
        work = self._at_work
        if work is None:
            return
        self._charge(work)
        quick = self._quick() if self.alternation.owed_ms > 0 else {}
        while quick:
            self._at_work = None
            try:
                self._steps(quick)
            finally:
                self._at_work = work
            quick = self._quick() if self.alternation.owed_ms > 0 else {}
        self._since_ms = now_ms()

    def _charge(self, work: WorkRequest) -> None:
        """Put what heavy work has just taken on its owner's account."""
        now = now_ms()
        self.spent.add(work.owner, now - self._since_ms, now)
        self.alternation.worked(now - self._since_ms, is_light=self.spent.is_light(work.owner, now))
        self._since_ms = now

    def _keep_within_budget(self) -> None:
        """Free idle caches; where that is not enough, the look under way ends, for nobody's run needs its caches."""
        looks = self.table.scratch.reserved_bytes > 0
        self.meter.add(evictions=self.table.keep_within_budget(self.queues.waiting(), spares_last=not looks))
        if looks and self.table.is_over_budget():
            for key, request in self.queues.heads().items():
                if isinstance(request, WorkRequest) and request.is_look and request.running is not None:
                    request.running.close()
                    self._fail(key, request, EngineFull(NO_ROOM))

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

    def _brief(self, heads: Mapping[str, Request], keys: Sequence[str]) -> None:
        """Answer what is brief until the time is up."""
        until = now_ms() + BRIEF_MS
        for key in keys:
            work, began = _work(heads[key]), now_ms()
            self._advance(key, work)
            self.spent.add(work.owner, now_ms() - began, now_ms())
            if now_ms() > until:
                return

    def _heavy(self, heads: Mapping[str, Request], keys: Sequence[str]) -> None:
        """Do one piece for each until the time is up: several short prompts fit, few prefill chunks."""
        until = now_ms() + WORK_MS
        for key in keys:
            work = _work(heads[key])
            if work.future.done():  # it became brief meanwhile, and was let in on a piece before
                continue
            self._at_work, self._since_ms = work, now_ms()
            try:
                self._advance(key, work)
            finally:
                self._charge(work)
                self._at_work = None
            if now_ms() > until:
                return

    def _advance(self, key: str, work: WorkRequest) -> None:
        """Do one piece of work."""
        self.scheduler.served([key])
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

    def _waiting(self, key: str, request: Request) -> Waiting:
        if isinstance(request, StepRequest):
            return Waiting(key, "step", request.auto, request.solo)
        spent_ms = self.spent.of(request.owner, now_ms())
        return Waiting(key, self._kind(request), spent_ms=spent_ms, is_begun=request.running is not None)

    def _kind(self, request: Request) -> Kind:
        """What a request is as things stand. Of who had a lot of late, nothing but steps goes before others' work."""
        if isinstance(request, StepRequest):
            return "step"
        if request.is_look:
            return "look"
        return "brief" if request.is_brief() and self.spent.is_light(request.owner, now_ms()) else "work"


def _work(request: Request) -> WorkRequest:
    assert isinstance(request, WorkRequest), "the scheduler tells steps and work apart"
    return request
