"""The engine: one thread owns the model, everybody else sends it requests and gets a Future.

Each turn takes the oldest request of every session: all decode steps among them go through one forward
together, then long work gets a piece done (a prefill chunk, say), and round again. Requests of one
session keep their order. There is no timer: what arrived during the last forward is the next batch.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict, deque
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import torch

from engine.capture import CaptureRing
from engine.config import EngineConfig, Recipe, SamplingParams, StopRules
from engine.errors import EngineStopped, LoupeError
from engine.kernels import KernelReport, speed_up
from engine.measure import now_ms
from engine.model_loader import LoadedModel
from engine.model_runner import ModelRunner
from engine.records import StepRecord
from engine.requests import StepRequest, Work, WorkRequest
from engine.session import DecodeSession
from engine.session_state import SessionState
from engine.stepping import Stepper
from engine.stock_model import follow_weights, share_weights
from engine.tokens import Role

log = logging.getLogger(__name__)

WORK_MS = 20.0  # of a turn may go to work in pieces; the piece that passes it is finished


class LLMEngine:
    """Owns a loaded model and the thread that runs it."""

    def __init__(self, loaded: LoadedModel, config: EngineConfig) -> None:
        self.info = loaded.info
        self.tokenizer = loaded.tokenizer
        self.config = config
        self.model = loaded.model
        self.kernels: KernelReport | None = None
        self.heartbeat_ms = now_ms()
        self._queues: OrderedDict[str, deque[StepRequest | WorkRequest]] = OrderedDict()
        self._wake = threading.Condition()
        self._closed = False
        self._ready: Future[Stepper] = Future()
        self._thread = threading.Thread(target=self._run, name="loupe-engine", daemon=True)
        self._thread.start()
        self.stepper = self._ready.result()

    # --- sessions -----------------------------------------------------------------------------------------

    def create_session(
        self, *, sampling: SamplingParams | None = None, stop: StopRules | None = None, seed: int = 0
    ) -> DecodeSession:
        """An empty session; prefill it first."""
        state = SessionState(
            self.info.id,
            self.stepper.runner.new_store(),
            CaptureRing(self.config.capture_bytes),
            sampling or SamplingParams(),
            stop or StopRules(),
            seed,
        )
        return DecodeSession(self, state)

    def resume(self, recipe: Recipe, roles: Sequence[Role] | None = None) -> Future[DecodeSession]:
        """A session rebuilt from its recipe: cache by prefilling, records from the rows that come out."""
        session = self.create_session(sampling=recipe.sampling, stop=recipe.stop, seed=recipe.seed)
        return session.rebuild(recipe, roles)

    # --- requests (any thread) ----------------------------------------------------------------------------

    def submit_step(self, key: str, request: StepRequest) -> Future[StepRecord]:
        """Ask for one decode step, in order with the same key's other requests."""
        self._enqueue(key, request)
        return request.future

    def submit(self, key: str, work: Work) -> Future[Any]:
        """Ask for work on the engine thread, in order with the same key's other requests."""
        request = WorkRequest(work)
        self._enqueue(key, request)
        return request.future

    def close(self) -> None:
        """Finish the piece under way, fail what waits, end the thread."""
        with self._wake:
            self._closed = True
            self._wake.notify()
        self._thread.join()

    @property
    def is_alive(self) -> bool:
        """Whether the thread that owns the model is running."""
        return self._thread.is_alive()

    def _enqueue(self, key: str, request: StepRequest | WorkRequest) -> None:
        with self._wake:
            if self._closed or not self._thread.is_alive():
                raise EngineStopped("The engine has stopped. Reload the page to start it again.")
            self._queues.setdefault(key, deque()).append(request)
            self._wake.notify()

    # --- engine thread ------------------------------------------------------------------------------------

    def _run(self) -> None:
        with torch.inference_mode():
            try:
                self._ready.set_result(self._prepare())
            except BaseException as error:  # the caller of the constructor gets it
                self._ready.set_exception(error)
                return
            while self._turn():
                self.heartbeat_ms = now_ms()
        self._fail_waiting()

    def _prepare(self) -> Stepper:
        self.stock = share_weights(self.model)
        if self.config.fast_kernels and self.info.device == "cpu" and self.info.dtype == "float32":
            self.kernels = speed_up(self.model, threads=torch.get_num_threads())
        follow_weights(self.stock, self.model)
        runner = ModelRunner(self.model, keep_queries=self.config.capture)
        return Stepper(runner, self.tokenizer, self.info)

    def _turn(self) -> bool:
        """Serve the oldest request of every session once. False when the engine is closed."""
        with self._wake:
            while not self._queues and not self._closed:
                self._wake.wait()
            if self._closed:
                return False
            self._put_restores_first()
            heads = [(key, queue[0]) for key, queue in self._queues.items()]
        steps = [(key, r) for key, r in heads if isinstance(r, StepRequest)][: self.config.max_batch]
        if steps:
            self._decode([request for _, request in steps])
            self._pop([key for key, _ in steps])
        self._work([(key, r) for key, r in heads if isinstance(r, WorkRequest)])
        return True

    def _put_restores_first(self) -> None:
        """A step of a session whose cache was released waits until it is filled again."""
        for queue in self._queues.values():
            head = queue[0]
            if isinstance(head, StepRequest) and head.state.is_released:
                queue.appendleft(WorkRequest(head.restore))

    def _work(self, works: Sequence[tuple[str, WorkRequest]]) -> None:
        """Do one piece for each, oldest first, until the turn's time is up: many looks fit, few prefill chunks."""
        until = now_ms() + WORK_MS
        for key, work in works:
            if self._advance(work):
                self._pop([key])
            self._to_back(key)
            if now_ms() > until:
                return

    def _pop(self, keys: Sequence[str]) -> None:
        """Drop the served head of each queue; a session that still waits goes behind the others."""
        with self._wake:
            for key in keys:
                self._queues[key].popleft()
                if self._queues[key]:
                    self._queues.move_to_end(key)
                else:
                    del self._queues[key]

    def _to_back(self, key: str) -> None:
        with self._wake:
            if key in self._queues:
                self._queues.move_to_end(key)

    def _decode(self, requests: Sequence[StepRequest]) -> None:
        """One forward for all that are ready; each gets its own record or its own error."""
        ready: list[StepRequest] = []
        for request in requests:
            try:
                request.before()
                ready.append(request)
            except Exception as error:
                request.future.set_exception(error)
        if not ready:
            return
        try:
            outcomes = self.stepper.decode([r.state for r in ready], [r.asked_ms for r in ready])
        except Exception as error:
            if len(ready) > 1:  # find out whose fault it was
                for request in ready:
                    self._decode([request])
                return
            log.exception("a decode step failed")
            outcomes = [_as_loupe_error(error)]
        for request, outcome in zip(ready, outcomes, strict=True):
            if isinstance(outcome, LoupeError):
                request.future.set_exception(outcome)
            else:
                request.after()
                request.future.set_result(outcome)

    def _advance(self, work: WorkRequest) -> bool:
        """Do one piece of long work. True when it is finished, well or not."""
        try:
            if work.running is None:
                work.running = work.start()
            next(work.running)
            return False
        except StopIteration as done:
            work.future.set_result(done.value)
        except LoupeError as error:
            work.future.set_exception(error)
        except Exception as error:
            log.exception("work on the engine thread failed")
            work.future.set_exception(_as_loupe_error(error))
        return True

    def _fail_waiting(self) -> None:
        with self._wake:
            waiting = [request for queue in self._queues.values() for request in queue]
            self._queues.clear()
        for request in waiting:
            request.future.set_exception(EngineStopped("The engine was stopped before this was done."))


def _as_loupe_error(error: Exception) -> LoupeError:
    """A message for a person; the traceback is in the log."""
    if isinstance(error, torch.OutOfMemoryError):
        return LoupeError("There was not enough memory for this step. Close other sessions, or shorten the prompt.")
    return LoupeError(f"This step failed inside the model: {type(error).__name__}: {error}. The session is as it was.")
