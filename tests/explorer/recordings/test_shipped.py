"""The recordings that ship are what the engine makes, and the first step of the first is what a page begins with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.config import EngineConfig, StopRules
from engine.llm_engine import LLMEngine
from engine.models.loader import LoadedModel
from explorer.components.component_source import ASSETS
from explorer.live.frame import unpack
from explorer.recordings.reading import Recording, read_recording
from explorer.recordings.recorder import record
from explorer.recordings.shipped import SHIPPED, first_step
from explorer.recordings.writing import recording_of

pytestmark = pytest.mark.slow

ANEW = "make them anew: python -m explorer.recordings.shipped"
MOST_BYTES = 1_500_000  # all of them: they travel with every copy of Loupe
MEASURED = {"timing_ms", "memory"}  # of the machine it was recorded on
LOGITS_DIFFER_BY = 2e-3  # another machine multiplies in another order
STEPS = 3


@pytest.fixture(scope="module")
def both(bundled: LoadedModel) -> tuple[Recording, Recording]:
    """The first steps of a recording as they ship, and as they are made here."""
    one = SHIPPED[0]
    engine = LLMEngine(bundled, EngineConfig(device="cpu", dtype="float32", prefix_bytes=0))
    try:
        stop = StopRules(max_new_tokens=STEPS + 1)
        made = record(engine, one.prompt, sampling=one.sampling, stop=stop, seed=one.seed)
        return read_recording(one.file.read_bytes()), read_recording(recording_of(made))
    finally:
        engine.close()


def test_a_shipped_step_is_what_the_engine_makes_to_rounding(both: tuple[Recording, Recording]):
    shipped, made = both
    assert {**shipped.header["model"]} == {**made.header["model"]}, ANEW
    for index in range(STEPS):
        assert differences(shipped.header["steps"][index], made.header["steps"][index], f"step {index}") == [], ANEW
        for name in ("attention", "kv_norms", "stage_probs"):
            before, now = (one.array(index, name).astype(np.float64) for one in both)
            assert abs(before[..., :16] - now[..., :16]).max() < LOGITS_DIFFER_BY, (index, name)


def differences(recorded: Any, made: Any, where: str) -> list[str]:
    """Where two steps tell of something else. Numbers may differ by rounding; arrays are compared apart."""
    if isinstance(recorded, dict) and isinstance(made, dict):
        if recorded.keys() != made.keys():
            return [f"{where}: {sorted(recorded.keys() ^ made.keys())}"]
        names = recorded.keys() - MEASURED - {"planes", "offset", "stops", "floor"}
        return [d for name in sorted(names) for d in differences(recorded[name], made[name], f"{where}.{name}")]
    if isinstance(recorded, list) and isinstance(made, list) and len(recorded) == len(made):
        pairs = enumerate(zip(recorded, made, strict=True))
        return [d for i, (a, b) in pairs for d in differences(a, b, f"{where}[{i}]")]
    if isinstance(recorded, float) and isinstance(made, float):
        return [] if abs(recorded - made) < LOGITS_DIFFER_BY else [f"{where}: {recorded} {made}"]
    return [] if recorded == made else [f"{where}: {recorded} {made}"]


def test_every_shipped_recording_can_be_read_and_has_its_steps():
    for one in SHIPPED:
        header = read_recording(one.file.read_bytes()).header
        assert len(header["steps"]) == one.steps
        assert header["session"]["prompt"] == one.prompt
        assert header["model"]["id"] == "smollm2-135m-instruct"
        assert all(step["timing_ms"]["forward"] > 0 and step["floor"] for step in header["steps"])


def test_there_are_five_they_are_small_and_the_page_offers_each_by_its_name():
    assert sum(one.file.stat().st_size for one in SHIPPED) < MOST_BYTES
    offered = (ASSETS / "step_page" / "controls" / "keep_run.js").read_text(encoding="utf-8")
    assert [one.name for one in SHIPPED if f"['{one.name}', say('shipped." in offered] == [one.name for one in SHIPPED]
    assert len(SHIPPED) == 5


def test_a_page_begins_with_the_prefill_of_the_first_and_with_nothing_of_its_later_steps():
    header, planes = unpack(first_step())
    assert [step["input_ids"] for step in header["steps"]] == [[504, 2644, 2643]]  # The, cat, sat
    assert [token["text"] for token in header["tokens"]] == ["The", " cat", " sat", " on"]
    assert header["session"]["finish_reason"] is None
    assert {"504", "335"} <= header["pieces"].keys()
    assert header["examples"][0]["prompt"] == "The cat sat"
    assert len(planes) < 20_000
