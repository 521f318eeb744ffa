"""Makes runs: by decoding a prompt here, or from a file."""

from __future__ import annotations

import atexit
import os
from pathlib import Path
from typing import TYPE_CHECKING

from engine.config import DeviceName, DtypeName, EngineConfig, SamplingParams, StopRules
from engine.starting import start
from explorer.recordings.recorder import record as record_run
from explorer.recordings.refusals import BadRecording
from explorer.recordings.writing import recording_of
from loupe.run import Run

if TYPE_CHECKING:
    from engine.llm_engine import LLMEngine

_engines: dict[EngineConfig, LLMEngine] = {}  # loaded once: a start takes seconds


def record(
    prompt: str,
    *,
    steps: int = 12,
    model: str | None = None,
    chat: bool = False,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    min_p: float = 0.0,
    repetition_penalty: float = 1.0,
    seed: int = 0,
    stop: tuple[str, ...] = (),
    device: DeviceName = "auto",
    dtype: DtypeName = "auto",
) -> Run:
    """Decode `prompt` for at most `steps` steps, the prefill among them, and keep all that happened.

    model  a name, a Hub id, a folder or a .gguf file; without one $LOUPE_MODEL, or the bundled model
    chat   put the prompt through the model's chat template
    stop   texts at which decoding ends
    The other settings are those of the Step page. Raises LoupeError, which says what is wrong and what to do.
    """
    sampling = SamplingParams(temperature, top_k, top_p, min_p, repetition_penalty)
    rules = StopRules(max_new_tokens=steps, stop_strings=tuple(stop))
    engine = _engine(
        EngineConfig(model=model or os.environ.get("LOUPE_MODEL") or EngineConfig().model, device=device, dtype=dtype)
    )
    run = record_run(engine, prompt, mode="chat" if chat else "raw", sampling=sampling, stop=rules, seed=seed)
    return Run(recording_of(run))


def open(path: str | Path) -> Run:  # noqa: A001  (loupe.open, as one opens a file)
    """A run from a `.loupe` file. Raises BadRecording, which says in words why a file cannot be read."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise BadRecording(f"{path} cannot be read: {error.strerror}. Check the path.") from None
    return Run(data)


def _engine(config: EngineConfig) -> LLMEngine:
    engine = _engines.get(config)
    if engine is None or not engine.is_alive:
        for other in list(_engines):  # two models may not fit beside each other
            _engines.pop(other).close()
        engine = _engines[config] = start(config)
    return engine


@atexit.register
def _close() -> None:
    for engine in _engines.values():
        engine.close()
