"""The recorded step is what the engine makes: what is seen while the model loads is what is seen after."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from engine.config import EngineConfig
from engine.llm_engine import LLMEngine
from engine.models.loader import LoadedModel
from explorer.engines.pool import EnginePool
from explorer.live.frame import read_plane, unpack
from explorer.recordings.first_step import FILE, first_step
from tests.explorer.page_client import LOOP

pytestmark = pytest.mark.slow

ANEW = "record it anew: python -m explorer.recordings.first_step"
MOST_BYTES = 40_000
MEASURED = {"timing_ms", "process_bytes", "device_allocated_bytes", "machine"}  # of the machine it was recorded on
DRAWN_AT_RANDOM = {"epoch"}
LOGITS_DIFFER_BY = 2e-3  # another machine multiplies in another order


@pytest.fixture(scope="module")
def frames(bundled: LoadedModel) -> tuple[bytes, bytes]:
    """As it was recorded, and as it is made here."""
    config = EngineConfig(device="cpu", dtype="float32", prefix_bytes=0)
    pool = EnginePool(config, start=lambda config, _: LLMEngine(bundled, config))
    try:
        return FILE.read_bytes(), asyncio.run_coroutine_threadsafe(first_step(pool), LOOP).result(60)
    finally:
        pool.close()


def differences(recorded: Any, made: Any, where: str, planes: tuple[bytes, bytes]) -> list[str]:
    """Where two headers tell of something else. Numbers and arrays may differ by rounding."""
    if isinstance(recorded, dict) and isinstance(made, dict):
        if {"dtype", "offset"} <= recorded.keys() and recorded.keys() == made.keys():
            return _planes_differ(recorded, made, where, planes)
        if recorded.keys() != made.keys() and where != "frame.pieces":  # the least likely of those shown may be another
            return [f"{where}: {sorted(recorded.keys() ^ made.keys())}"]
        names = (recorded.keys() & made.keys()) - MEASURED - DRAWN_AT_RANDOM
        return [d for name in sorted(names) for d in differences(recorded[name], made[name], f"{where}.{name}", planes)]
    if isinstance(recorded, list) and isinstance(made, list) and len(recorded) == len(made):
        pairs = enumerate(zip(recorded, made, strict=True))
        return [d for i, (a, b) in pairs for d in differences(a, b, f"{where}[{i}]", planes)]
    if isinstance(recorded, float) and isinstance(made, float):
        return [] if abs(recorded - made) < LOGITS_DIFFER_BY else [f"{where}: {recorded} {made}"]
    return [] if recorded == made else [f"{where}: {recorded} {made}"]


def _planes_differ(recorded: Any, made: Any, where: str, planes: tuple[bytes, bytes]) -> list[str]:
    before, now = read_plane(planes[0], recorded), read_plane(planes[1], made)
    if before.shape != now.shape:
        return [f"{where}: {before.shape} {now.shape}"]
    if where.endswith("tail_counts"):  # rounding moves a token over the edge of its bin, and loses none
        before, now = before.sum(), now.sum()
    elif ".cand_" in where:  # far down, neighbours may change places
        before, now = before[..., :16], now[..., :16]
    apart = float(np.abs(np.asarray(before, np.float64) - np.asarray(now, np.float64)).max(initial=0.0))
    return [] if apart < LOGITS_DIFFER_BY else [f"{where}: {apart} apart"]


def test_the_recorded_step_is_what_the_engine_makes_to_rounding(frames: tuple[bytes, bytes]):
    (recorded, before), (made, now) = (unpack(frame) for frame in frames)
    assert [step["input_ids"] for step in recorded["steps"]] == [[504, 2644, 2643]]  # The, cat, sat
    assert differences(recorded, made, "frame", (before, now)) == [], ANEW


def test_the_recorded_step_is_small_and_names_its_model_and_nobodys_session(frames: tuple[bytes, bytes]):
    recorded, _ = unpack(frames[0])
    assert len(frames[0]) < MOST_BYTES
    assert recorded["model"]["name"] == "SmolLM2-135M-Instruct"
    assert recorded["session"]["sid"] == "recorded"
    assert recorded["steps"][0]["timing_ms"]["forward"] > 0
