"""The real app in a process of its own, with the batch's size chosen: `python -m benchmarks.load.server`.

Everything after is Streamlit's own command line. Two things differ from `streamlit run app.py`: the environment
says how many sessions may share a forward, and SIGUSR1 gives free memory back, so that what is left can be counted.
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.app import RunningApp, started
from engine.config import EngineConfig

if TYPE_CHECKING:
    from engine.llm_engine import LLMEngine
    from engine.models.loader import LoadedModel

APP = Path(__file__).resolve().parents[2] / "app.py"
MAX_BATCH = "LOUPE_BENCH_MAX_BATCH"


@contextmanager
def load_server(model: str, max_batch: int) -> Iterator[RunningApp]:
    """A server of the bundled model (or the one that is named); ended afterwards."""
    with started(("-m", "benchmarks.load.server"), {"LOUPE_MODEL": model, MAX_BATCH: str(max_batch)}) as app:
        yield app


def main() -> None:
    """Run the app in this process."""
    from streamlit.web.cli import main as streamlit

    from engine.llm_engine import LLMEngine

    make = LLMEngine.__init__

    def make_limited(engine: LLMEngine, loaded: LoadedModel, config: EngineConfig) -> None:
        make(engine, loaded, replace(config, max_batch=int(os.environ[MAX_BATCH])))

    setattr(LLMEngine, "__init__", make_limited)  # noqa: B010  # whoever makes the settings, the engine gets these
    signal.signal(signal.SIGUSR1, lambda *_: _give_back())
    sys.argv = ["streamlit", "run", str(APP), *sys.argv[1:]]
    streamlit()


def _give_back() -> None:
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)


if __name__ == "__main__":
    main()
