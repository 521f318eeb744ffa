"""Sessions through the real engine: what a step costs with everything around it, and what an idle one holds."""

from __future__ import annotations

import ctypes
import gc
import sys

from benchmarks.results import Row
from engine.config import SamplingParams, StopRules
from engine.llm_engine import LLMEngine
from engine.measure.clocks import process_bytes
from engine.session import DecodeSession

PROMPT = tuple(range(1000, 1032))
IDLE_SESSIONS = 40
IDLE_STEPS = 8
PRESETS = {
    "no stage": SamplingParams(),
    "top-k and top-p": SamplingParams(temperature=0.7, top_k=50, top_p=0.9, repetition_penalty=1.1),
}


def session_rows(engine: LLMEngine, steps: int) -> list[Row]:
    """Rows through the engine as users have it."""
    rows = [_overhead(engine, name, sampling, steps) for name, sampling in PRESETS.items()]
    return [*rows, *_idle(engine)]


def _session(engine: LLMEngine, sampling: SamplingParams) -> DecodeSession:
    session = engine.create_session(sampling=sampling, stop=StopRules(max_new_tokens=10_000, use_end_ids=False))
    session.prefill(PROMPT).result()
    return session


def _overhead(engine: LLMEngine, name: str, sampling: SamplingParams, steps: int) -> Row:
    """What a step takes besides the model's forward: sampling, stop rules, the record, the hand-over."""
    session = _session(engine, sampling)
    timings = [t for _ in range(steps) if (t := session.step().result().timing) is not None]
    session.release()
    best = min(timings, key=lambda t: t.total_ms)
    rest = sorted(t.total_ms - t.forward_ms for t in timings)
    parts = {"total_best_ms": best.total_ms, "forward_best_ms": best.forward_ms, "sample_best_ms": best.sample_ms}
    return Row(f"a step beside its forward, {name}", rest[0], "ms", median=rest[len(rest) // 2], parts=parts)


def _idle(engine: LLMEngine) -> list[Row]:
    """What a session adds to the process once nobody steps it, less its keys and values."""
    keep = [_idle_session(engine) for _ in range(3)]  # what is allocated once only is allocated now
    before = settled_bytes()
    sessions = [_idle_session(engine) for _ in range(IDLE_SESSIONS)]
    added = settled_bytes() - before
    reserved = sum(session.records[-1].memory.kv_reserved_bytes for session in sessions)
    captured = sum(session.records[-1].memory.capture_bytes for session in sessions)
    parts = {
        "process_bytes_per_session": added / IDLE_SESSIONS,
        "kv_reserved_bytes_per_session": reserved / IDLE_SESSIONS,
        "capture_bytes_per_session": captured / IDLE_SESSIONS,
    }
    for session in (*keep, *sessions):
        session.release()
    beside = (added - reserved) / IDLE_SESSIONS / 1e6
    return [Row(f"an idle session beside its KV, after {IDLE_STEPS} steps", beside, "MB", "at most", 2.0, parts=parts)]


def _idle_session(engine: LLMEngine) -> DecodeSession:
    session = _session(engine, PRESETS["top-k and top-p"])
    for _ in range(IDLE_STEPS):
        session.step().result()
    return session


def settled_bytes() -> int:
    """Resident bytes once the C library has given back what is free."""
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)
    used = process_bytes()
    assert used is not None, "this system does not say how large a process is"
    return used
