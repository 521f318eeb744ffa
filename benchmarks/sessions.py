"""Sessions through the real engine: what a step costs with everything around it, and what an idle one holds."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading

from benchmarks.results import Row, Wanted
from engine.config import SamplingParams, StopRules
from engine.llm_engine import LLMEngine
from engine.measure.clocks import process_bytes
from engine.records import StepTiming
from engine.serving.requests import at_once
from engine.session import DecodeSession

PROMPT = tuple(range(1000, 1032))
IDLE_SESSIONS = 40
IDLE_STEPS = 8
SHARING = 32  # sessions in one forward
ALL_STAGES = SamplingParams(temperature=0.7, top_k=50, top_p=0.9, repetition_penalty=1.1)
PRESETS = {"no stage": (SamplingParams(), 1.0), "top-k, top-p, penalty": (ALL_STAGES, 2.5)}  # and the budget in ms
SHARE_MS = 0.5  # budget of each session in a forward of `SHARING`


def session_rows(engine: LLMEngine, steps: int) -> list[Row]:
    """Rows through the engine as users have it."""
    rows = [_overhead(engine, name, sampling, steps, most) for name, (sampling, most) in PRESETS.items()]
    rows.append(_overhead(engine, "no stage, with its attention", SamplingParams(), steps, None, watched=True))
    rows += [_share(engine, name, sampling, max(3, steps // 5)) for name, (sampling, _) in PRESETS.items()]
    return [*rows, *_idle(engine)]


def _session(engine: LLMEngine, sampling: SamplingParams, *, seed: int = 0, watched: bool = False) -> DecodeSession:
    rules = StopRules(max_new_tokens=10_000, use_end_ids=False)
    session = engine.create_session(sampling=sampling, stop=rules, seed=seed, watched=watched)
    session.prefill(PROMPT).result()
    return session


def _overhead(
    engine: LLMEngine, name: str, sampling: SamplingParams, steps: int, most_ms: float | None, *, watched: bool = False
) -> Row:
    """What a step takes besides the model's forward: sampling, stop rules, the record, the hand-over."""
    session = _session(engine, sampling, watched=watched)
    timings = [t for _ in range(steps) if (t := session.step().result().timing) is not None]
    session.release()
    best = min(timings, key=lambda t: t.total_ms)
    rest = sorted(t.total_ms - t.forward_ms for t in timings)
    parts = {"total_best_ms": best.total_ms, "forward_best_ms": best.forward_ms, "sample_best_ms": best.sample_ms}
    wanted: Wanted = "report" if most_ms is None else "at most"
    what, median = f"a step beside its forward, {name}", rest[len(rest) // 2]
    return Row(what, rest[0], "ms", wanted, most_ms, median=median, parts=parts)


def _share(engine: LLMEngine, name: str, sampling: SamplingParams, steps: int) -> Row:
    """What each of many sessions takes of a step besides the forward that they share."""
    sessions = [_session(engine, sampling, seed=seed) for seed in range(SHARING)]
    each = sorted(_share_ms(_step_together(engine, sessions)) for _ in range(steps))
    for session in sessions:
        session.close().result()
    what = f"a session's share of a step beside the forward of {SHARING}, {name}"
    return Row(what, each[0], "ms", "at most", SHARE_MS, median=each[len(each) // 2])


def _step_together(engine: LLMEngine, sessions: list[DecodeSession]) -> list[StepTiming]:
    """One step of all in one forward: they are asked for while the engine's thread is held."""
    begun, release = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        release.wait()

    held = engine.submit("benchmark", at_once(hold))
    begun.wait()
    asked = [session.step() for session in sessions]
    release.set()
    held.result()
    records = [step.result() for step in asked]
    assert {record.batch_size for record in records} == {len(sessions)}, "they were to share one forward"
    return [record.timing for record in records if record.timing is not None]


def _share_ms(timings: list[StepTiming]) -> float:
    """Sampling is each session's own, the other bookkeeping is everybody's at once."""
    shared = max(timing.other_ms for timing in timings)
    return (sum(timing.sample_ms for timing in timings) + shared) / len(timings)


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
    session = _session(engine, ALL_STAGES)
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
