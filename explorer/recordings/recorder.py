"""Records a run while it is decoded: each step's attention is kept as it comes, before the session lets go of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.config import SamplingParams, StopRules
from explorer.engines import bridge
from explorer.recordings.writing import RecordedRun, fits, kept_rows
from explorer.workspace.examples import PromptMode
from explorer.workspace.recipe_json import SavedSession

if TYPE_CHECKING:
    from engine.llm_engine import LLMEngine
    from engine.records import StepRecord
    from engine.session import DecodeSession


class Recorder:
    """Keeps the attention of one session, step by step."""

    def __init__(self, engine: LLMEngine, session: DecodeSession) -> None:
        self._engine = engine
        self._session = session
        self._rows: list[NDArray[np.float16]] = []

    def take(self, record: StepRecord) -> None:
        """Keep the attention of the session's newest step."""
        assert record.index == len(self._rows), f"step {record.index} follows {len(self._rows)} steps"
        self._rows.append(self._session.attention(record.index).result().astype(np.float16))

    def run(self, prompt: str, mode: PromptMode, notes: tuple[str, ...] = ()) -> RecordedRun:
        """All that was decoded so far."""
        snapshot, engine = self._session.snapshot, self._engine
        roles = snapshot.roles[: len(snapshot.recipe.prompt_ids)]
        saved = SavedSession(snapshot.recipe, prompt, mode, roles)
        is_whole, info = fits(snapshot.records, engine.info), engine.info
        rows = tuple(kept_rows(row, is_whole) for row in self._rows)
        return RecordedRun(info, info.id, saved, snapshot.records, rows, engine.tokenizer, notes, engine.machine)


def record(
    engine: LLMEngine,
    prompt: str,
    *,
    mode: PromptMode = "raw",
    sampling: SamplingParams | None = None,
    stop: StopRules | None = None,
    seed: int = 0,
) -> RecordedRun:
    """Decode a prompt until a rule stops it. Raises LoupeError."""
    sampling, stop = sampling or SamplingParams(), stop or StopRules()
    session = engine.create_session(sampling=sampling, stop=stop, seed=seed, watched=True)
    try:
        recorder = Recorder(engine, session)
        encoded = bridge.encode(engine, prompt, mode)
        newest = session.prefill(encoded).result()
        recorder.take(newest)
        while newest.finish_reason is None:
            newest = session.step().result()
            recorder.take(newest)
        return recorder.run(prompt, mode, encoded.notes)
    finally:
        session.close().result()
