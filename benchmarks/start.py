"""From starting Python to the first token, in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.results import Row
from benchmarks.timing import Timed

FIRST_TOKEN = """
from engine.config import EngineConfig
from engine.starting import start
config = EngineConfig(device="cpu", dtype="float32", fast_kernels=True)
engine = start(config)
session = engine.create_session()
session.prefill(engine.tokenizer.encode("The cat sat")).result()
print(session.records[0].emitted_ids)
"""


def start_rows(rounds: int, *, first_ever: bool) -> list[Row]:
    """Later starts; with `first_ever` also one that fetches and converts the weights into an empty folder."""
    seen = Timed(tuple(_start_ms({}) for _ in range(rounds)))
    parts = {f"round_{i}_ms": ms for i, ms in enumerate(seen.rounds_ms)}
    rows = [Row("start to first token, later", seen.best / 1e3, "s", "at most", 5.0, seen.median / 1e3, parts)]
    if first_ever:
        with tempfile.TemporaryDirectory() as folder:
            seconds = _start_ms({"LOUPE_CACHE": folder}) / 1e3
        rows.append(Row("start to first token, first ever", seconds, "s", "at most", 90.0))
    return rows


def _start_ms(environment: dict[str, str]) -> float:
    started = time.perf_counter()
    root = Path(__file__).parents[1]
    subprocess.run(
        [sys.executable, "-c", FIRST_TOKEN], cwd=root, env=os.environ | environment, check=True, capture_output=True
    )
    return (time.perf_counter() - started) * 1e3
