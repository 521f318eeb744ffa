"""The engine as its sessions see it: the queue of its thread, its model, the other sessions.

`LLMEngine` is one, and makes the sessions; so what a session asks for stands here, where both can import it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, Protocol

from transformers import PreTrainedModel

from engine.config import EngineConfig
from engine.decode.stepping import Stepper
from engine.facts import ModelInfo
from engine.records import StepRecord
from engine.serving.counters import EngineCounters
from engine.serving.requests import StepRequest, Work, never
from engine.serving.session_table import SessionTable
from engine.text.tokenizer import Tokenizer


class EngineThread(Protocol):
    """One thread that owns a model, and takes requests from any other."""

    info: ModelInfo
    config: EngineConfig
    sessions: SessionTable
    stepper: Stepper
    tokenizer: Tokenizer
    stock: PreTrainedModel

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs."""

    def submit_step(self, key: str, request: StepRequest) -> Future[StepRecord]:
        """Ask for one decode step, in order with the same key's other requests."""

    def submit_steps(self, requests: Mapping[str, StepRequest]) -> None:
        """Ask for a step of several sessions at one moment, so that no turn begins between them."""

    def submit(
        self,
        key: str,
        work: Work,
        *,
        owner: str | None = None,
        is_brief: Callable[[], bool] = never,
        is_look: bool = False,
    ) -> Future[Any]:
        """Ask for work on the engine thread, in order with the same key's other requests."""

    def count(self, **amounts: int) -> None:
        """Add to the engine's counters, by their names."""

    def counters(self) -> EngineCounters:
        """What was done so far and what is held now."""
