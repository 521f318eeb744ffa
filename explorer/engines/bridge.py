"""The only place where the explorer meets what needs torch. Everything is imported when it is first used.

So the page is on screen, with progress, before the seconds it takes to import torch have passed; and a
package that is missing is a message on a page, not a traceback at start.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

from engine.config import EngineConfig, SamplingParams
from engine.costs.shape import ModelShape
from engine.errors import LoupeError
from engine.progress import OnLoading
from engine.records import Check
from engine.starting import start
from engine.studies.claim_records import Finding
from engine.studies.key_records import KeyChange
from engine.tokens import EncodedPrompt
from explorer.workspace.examples import PromptMode

if TYPE_CHECKING:
    from engine.decode.layer_times import LayerTimes
    from engine.llm_engine import LLMEngine
    from engine.serving.engine_thread import EngineThread
    from engine.session import DecodeSession
    from engine.studies.chunk_sizes import Chunks
    from engine.studies.prefill_and_decode import Phases
    from engine.studies.uncached import Race
    from engine.tiles import HeadInputs


def start_engine(config: EngineConfig, progress: OnLoading) -> LLMEngine:
    """Load a model and start the thread that owns it."""
    try:
        return start(config, progress)
    except ImportError as error:
        missing = error.name or str(error)
        raise LoupeError(
            f"The package {missing} cannot be imported ({error}). "
            "Install what Loupe needs with `pip install -r requirements.txt`, then try again."
        ) from error


def settle_memory() -> None:
    """Collect once, then take what is left out of every later collection: a model is a million small objects."""
    gc.unfreeze()  # a model that was closed lies among the frozen ones
    gc.collect()
    gc.freeze()


def encode(engine: LLMEngine, prompt: str, mode: PromptMode) -> EncodedPrompt:
    """A prompt as it stands, or as a user's turn in the model's chat template."""
    if mode == "raw":
        return engine.tokenizer.encode(prompt)
    from engine.text.tokenizer import ChatMessage

    return engine.tokenizer.encode_chat([ChatMessage("user", prompt)])


def check_numbers(session: DecodeSession) -> Future[tuple[Check, ...]]:
    """Start the live self-test."""
    from engine.studies.self_check.check_numbers import check_numbers as start

    return start(session)


def read_head(session: DecodeSession, step: int, layer: int, head: int) -> Future[HeadInputs]:
    """Start reading what one head worked with at a step."""
    from engine.studies.head_reader import read_head as start

    return start(session, step, layer, head)


def check_claim(engine: LLMEngine, name: str, report: Callable[[int, int], None], owner: str) -> Future[Finding]:
    """Start running a claim on the loaded model."""
    from engine.studies.claim_checks import check as start

    return start(engine, name, report, owner=owner)


def layer_times(session: DecodeSession, step: int) -> Future[LayerTimes]:
    """Start timing the layers of a step."""
    return session.layer_times(step)


def shape_on_hub(repo: str) -> ModelShape:
    """A model's sizes by its Hub id. Waits for the network."""
    from engine.models.hub_shape import shape_on_hub as fetch

    return fetch(repo)


def change_first_token(session: DecodeSession, token_id: int, report: Callable[[int, int], None]) -> Future[KeyChange]:
    """Start looking at what another first token does to the cache."""
    from engine.studies.key_change import change_first_token as start

    return start(session, token_id, report)


def token_labels(engine: EngineThread, token_ids: Sequence[int]) -> list[str]:
    """Tokens as short visible text: spaces, newlines and halves of characters each have a form of their own."""
    from engine.text.tokenizer import visible

    return [visible(piece) for piece in engine.tokenizer.pieces(token_ids)]


def race(prompt_ids: Sequence[int], new_tokens: int, sampling: SamplingParams, seed: int) -> Race:
    """A race with and without a cache, to be started."""
    from engine.studies.uncached import Race

    return Race(tuple(prompt_ids), new_tokens, sampling, seed)


def phases(source: Sequence[int], sizes: Sequence[tuple[int, int]]) -> Phases:
    """Requests of P prompt tokens and N new ones, their phases to be timed."""
    from engine.studies.prefill_and_decode import Phases

    return Phases(source, sizes)


def chunks(source: Sequence[int], prompt_len: int) -> Chunks:
    """A prompt of some length to be fed in pieces of every size; `source` is repeated until it is long enough."""
    from engine.studies.chunk_sizes import Chunks
    from engine.studies.prefill_and_decode import filled

    return Chunks(filled(source, prompt_len))
