"""The engine: one thread owns the model, everybody else sends it requests and gets a Future.

That thread also loads the model, chooses its kernels and proves it: each thread that lets PyTorch compute in
parallel gets a team of OpenMP threads of its own, and while two teams exist both sleep between two operations
instead of waiting for the next, which costs a step a third of its time and more.

Each turn takes the oldest request of every session: decode steps go through one forward together, then long
work gets a piece done (a prefill chunk, say), and round again. Requests of one session keep their order; who
is next is scheduler.py's to say, and server.py runs it.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from transformers import PreTrainedModel

from engine.config import EngineConfig, Recipe, SamplingParams, StopRules
from engine.decode.session_state import SessionState
from engine.decode.stepping import Stepper
from engine.errors import EngineBusy, EngineStopped
from engine.facts import ModelInfo
from engine.forward.capture import CaptureRing
from engine.forward.model_runner import ModelRunner
from engine.forward.prefix_cache import PrefixCache
from engine.forward.scratch import Scratch
from engine.kernels.speed_up import KernelReport
from engine.measure.clocks import now_ms
from engine.measure.machine_rates import MachineRates, known, measure
from engine.models.early_weights import EarlyWeights
from engine.models.load_errors import in_words
from engine.models.loader import LoadedModel, load_model
from engine.models.trusted import trust
from engine.progress import OnLoading
from engine.records import StepRecord
from engine.serving.counters import EngineCounters, EngineHealth, Meter
from engine.serving.crowding import Crowding
from engine.serving.requests import Pieces, RequestQueues, StepRequest, Work, WorkRequest, at_once, never
from engine.serving.server import Server
from engine.serving.session_table import SessionTable
from engine.session import DecodeSession
from engine.text.tokenizer import Tokenizer
from engine.tokens import Role

log = logging.getLogger(__name__)

MEASURING = "machine"  # the key that a measurement of the machine waits under
HEARTBEAT_S = 1.0  # how often an idle engine thread shows that it is there

APART = "Sessions of this model get a forward pass each: it computes something else where several share one."

# Every call of PyTorch gives the interpreter away and asks for it back, a thousand times a step. Any other thread
# that computes in Python may then keep it for this long; with Python's own 5 ms, a step takes seconds.
SWITCH_S = 50e-6


class LLMEngine:
    """Owns a model and the thread that runs it."""

    info: ModelInfo
    tokenizer: Tokenizer
    model: PreTrainedModel
    stock: PreTrainedModel
    kernels: KernelReport | None

    def __init__(self, loaded: LoadedModel, config: EngineConfig) -> None:
        """Serve a model that is loaded already; `start` also loads it where it will run."""
        self._begin(lambda: loaded, config)

    @classmethod
    def start(
        cls, config: EngineConfig, progress: OnLoading | None = None, early: EarlyWeights | None = None
    ) -> LLMEngine:
        """Load the model that `config` names, on the thread that will run it, and serve it. Raises LoupeError."""
        engine = cls.__new__(cls)
        engine._begin(partial(load_model, config, progress, early), config)
        return engine

    def _begin(self, load: Callable[[], LoadedModel], config: EngineConfig) -> None:
        self.config = config
        self.heartbeat_ms = now_ms()
        self.sessions = SessionTable(config.budgets, Scratch())
        self.crowding = Crowding()
        self._is_busy = False
        self._meter = Meter()
        self._queues = RequestQueues()
        self._ready: Future[Server] = Future()
        self._thread = threading.Thread(target=self._run, args=(load,), name="loupe-engine", daemon=True)
        self._thread.start()
        self.stepper = self._ready.result().stepper

    # --- sessions -----------------------------------------------------------------------------------------

    def create_session(
        self,
        *,
        sampling: SamplingParams | None = None,
        stop: StopRules | None = None,
        seed: int = 0,
        solo: bool = False,
        owner: str | None = None,
        watched: bool = False,
    ) -> DecodeSession:
        """An empty session; prefill it first. Raises EngineFull.

        solo     it never shares a forward
        owner    sessions of one (a tab, say) have one share of the engine's time for prefills and looks
        watched  each step brings its attention along
        """
        state = SessionState(
            self.info.id,
            self.stepper.runner.new_store(),
            CaptureRing(self.config.capture_bytes),
            sampling or SamplingParams(),
            self.config.budgets.capped(stop or StopRules()),
            seed,
            watched=watched,
        )
        return DecodeSession(self, state, solo=solo, owner=owner)

    def resume(self, recipe: Recipe, roles: Sequence[Role] | None = None) -> Future[DecodeSession]:
        """A session rebuilt from its recipe: cache by prefilling, records from the rows that come out."""
        session = self.create_session(sampling=recipe.sampling, stop=recipe.stop, seed=recipe.seed)
        return session.rebuild(recipe, roles)

    # --- requests (any thread) ----------------------------------------------------------------------------

    def submit_step(self, key: str, request: StepRequest) -> Future[StepRecord]:
        """Ask for one decode step, in order with the same key's other requests."""
        self._enqueue(key, request)
        return request.future

    def submit_steps(self, requests: Mapping[str, StepRequest]) -> None:
        """Ask for a step of several sessions at one moment, so that no turn begins between them."""
        self._require_thread()
        self._queues.put_together(requests)

    def submit(
        self,
        key: str,
        work: Work,
        *,
        owner: str | None = None,
        is_brief: Callable[[], bool] = never,
        is_look: bool = False,
    ) -> Future[Any]:
        """Ask for work on the engine thread, in order with the same key's other requests. Brief work goes first.

        Of looks one runs at a time, and an owner may have only so many. Raises EngineBusy.
        """
        request = WorkRequest(work, owner or key, is_brief=is_brief, is_look=is_look)
        most = self.config.budgets.looks
        if is_look and most and self._queues.num_looks(request.owner) >= most:
            raise EngineBusy(
                f"{most} measurements or checks of this tab are under way or in line, and no more are taken. Wait for "
                "one of them, or stop it."
            )
        self._enqueue(key, request)
        return request.future

    def study(self, key: str, work: Callable[[ModelRunner], Pieces], *, owner: str | None = None) -> Future[Any]:
        """Ask for a lab's work: it gets the runner, no session, and has caches of its own. Raises EngineBusy."""
        return self.submit(key, lambda: work(self.stepper.runner), owner=owner, is_look=True)

    def measure_machine(self, *, again: bool = False) -> Future[MachineRates]:
        """How fast this machine reads and multiplies in the model's number format, measured once per process.

        Runs on the engine thread, so that nothing runs beside it. Raises EngineBusy, now or through the Future,
        while anybody waits for the engine.
        """
        self._refuse_beside(frozenset())
        return self.submit(MEASURING, at_once(lambda: self._measure(again)))

    @property
    def machine(self) -> MachineRates | None:
        """What `measure_machine` found earlier in this process; None: not measured yet."""
        return known(*self._format())

    def close(self, patience_s: float | None = None) -> None:
        """Finish the piece under way, fail what waits, end the thread; wait for that no longer than `patience_s`."""
        self._queues.close()
        self._thread.join(patience_s)

    @property
    def is_alive(self) -> bool:
        """Whether the thread that owns the model is running."""
        return self._thread.is_alive()

    def health(self) -> EngineHealth:
        """Whether the engine answers: asks nothing of its thread, so a forward that hangs cannot hold it up."""
        age_s = max(0.0, now_ms() - self.heartbeat_ms) / 1e3
        return EngineHealth(self.is_alive, age_s, self._is_busy, len(self._queues))

    def count(self, **amounts: int) -> None:
        """Add to the counters, by their names."""
        self._meter.add(**amounts)

    def counters(self) -> EngineCounters:
        """What was done so far and what is held now."""
        held = self.sessions.total()
        return self._meter.read(
            now_ms(),
            sessions=len(self.sessions),
            waiting=len(self._queues),
            kv_live_bytes=held.live,
            kv_reserved_bytes=held.reserved,
            prefix_bytes=self.stepper.prefixes.num_bytes,
        )

    def _enqueue(self, key: str, request: StepRequest | WorkRequest) -> None:
        self._require_thread()
        self._queues.put(key, request)

    def _require_thread(self) -> None:
        if not self._thread.is_alive():
            raise EngineStopped("The engine has stopped. Reload the page to start it again.")

    def _format(self) -> tuple[torch.device, torch.dtype]:
        return torch.device(self.info.device), getattr(torch, self.info.dtype)

    def _refuse_beside(self, mine: frozenset[str]) -> None:
        if others := len(self._queues.waiting() - mine):
            raise EngineBusy(
                f"{others} session{'s are' if others > 1 else ' is'} using the engine, and a measurement beside them "
                "would disturb both. Try again when nobody steps."
            )

    # --- engine thread ------------------------------------------------------------------------------------

    def _run(self, load: Callable[[], LoadedModel]) -> None:
        sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_S))
        try:
            server = self._prepare(load)
        except BaseException as error:  # whoever starts the engine gets it
            self._ready.set_exception(error)
            return
        self._ready.set_result(server)
        try:
            with torch.inference_mode():
                self._serve(server)
        except BaseException:
            log.exception("the engine's thread has died")
        finally:  # also where the thread dies: nobody may wait for ever on it
            self._queues.close()
            self.crowding.close()
            self._fail_waiting(
                "The engine stopped before this was done. Ask again in a moment; the run is rebuilt then."
            )

    def _serve(self, server: Server) -> None:
        while self._queues.wait(HEARTBEAT_S):
            self.heartbeat_ms, self._is_busy = now_ms(), True
            self.crowding.begin()
            try:
                server.turn()
            except Exception:  # a fault of the engine itself: no session may wait for ever on it
                log.exception("a turn of the engine failed")
                self._fail_waiting("The engine failed, and dropped what was waiting. Ask again.")
            self.crowding.end()
            self.heartbeat_ms, self._is_busy = now_ms(), False

    def _measure(self, again: bool) -> MachineRates:
        self._refuse_beside(frozenset({MEASURING}))
        return measure(*self._format(), again=again)

    def _prepare(self, load: Callable[[], LoadedModel]) -> Server:
        loaded = load()  # outside of inference mode: parameters must stay ordinary tensors
        self.info, self.tokenizer, self.model = loaded.info, loaded.tokenizer, loaded.model
        with in_words(self.info.name), torch.inference_mode():
            trusted = trust(loaded, self.config, self.sessions.scratch)
        self.stock, self.kernels = trusted.stock, trusted.kernels
        if not trusted.may_share:
            self.info = replace(self.info, notes=(*self.info.notes, APART))
        prefixes = PrefixCache(self.config.prefix_bytes)
        most = self.config.budgets.session_kv_bytes
        stepper = Stepper(trusted.runner, self.tokenizer, self.info, prefixes=prefixes, most_kv_bytes=most)
        most = self.config.max_batch if trusted.may_share else 1
        return Server(stepper, self._queues, self.sessions, self._meter, max_batch=most)

    def _fail_waiting(self, message: str) -> None:
        for request in self._queues.drain():
            with suppress(InvalidStateError):  # somebody gave it up
                request.future.set_exception(EngineStopped(message))
