"""From a config to an engine that serves, as fast as this machine can: what the page and the terminal both call."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

from engine.config import EngineConfig
from engine.lean_imports import collecting_later, import_libraries
from engine.models.early_weights import begin
from engine.models.source import is_ready
from engine.progress import OnLoading

if TYPE_CHECKING:
    from engine.llm_engine import LLMEngine


def start(config: EngineConfig, progress: OnLoading | None = None) -> LLMEngine:
    """Load the model that `config` names and start the thread that owns it. Raises LoupeError or ImportError."""
    was_ready = is_ready(config.model)
    early = begin(config)
    with collecting_later():
        if progress is not None:
            progress("Importing torch and transformers", 0.0)
        import_libraries()
        from engine.llm_engine import LLMEngine

        engine = LLMEngine.start(config, progress, early)
        if not was_ready:
            gc.collect()  # an import leaves a second model behind
        gc.freeze()  # all this stays: later collections need not look at it
    return engine
