"""The loaded model beside itself in bfloat16: the same prompt, greedy, stepped in turn, tokens compared.

The second engine is loaded for this and closed afterwards. Steps alternate, so that a busy moment of the machine
hits both alike, and each format has its own floor: its own bytes over what this machine reads in that format.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.config import EngineConfig, SamplingParams, StopRules
from engine.costs.bytes import step_bytes
from explorer.engines.bridge import settle_memory, token_labels
from explorer.labs.progress import Stopped, TaskProgress
from explorer.say import words_beside

if TYPE_CHECKING:
    from engine.llm_engine import LLMEngine
    from engine.session import DecodeSession
    from explorer.engines.pool import Start

say = words_beside(__file__)

GREEDY = SamplingParams(temperature=0.0)
LOADING = 100  # of the work's steps are the second model's loading


@dataclass(frozen=True, slots=True)
class PrecisionRun:
    """One format's run.

    forward_ms  of each decode step; floor_ms is the bytes of a step over the bandwidth measured in this format
    """

    dtype: str
    token_ids: tuple[int, ...]
    forward_ms: tuple[float, ...]
    weight_bytes: int
    kv_bytes: int
    bandwidth: float
    floor_ms: float


@dataclass(frozen=True, slots=True)
class Pair:
    """Both runs. `pieces` is the text of each token id that either drew."""

    runs: tuple[PrecisionRun, PrecisionRun]
    prompt: str
    pieces: dict[int, str]

    @property
    def same(self) -> int:
        """Tokens that both drew alike before they first differ."""
        first, second = (run.token_ids for run in self.runs)
        pairs = zip(first, second, strict=True)
        return next((i for i, (a, b) in enumerate(pairs) if a != b), len(first))


def begin(
    engine: LLMEngine, start: Start, config: EngineConfig, prompt: str, steps: int
) -> Callable[[TaskProgress], Future[Pair]]:
    """Work for `progress.task`: loads the second engine, steps both, closes it."""

    def begun(report: TaskProgress) -> Future[Pair]:
        found: Future[Pair] = Future()
        threading.Thread(
            target=_settle, args=(found, engine, start, config, prompt, steps, report), daemon=True
        ).start()
        return found

    return begun


def _settle(
    found: Future[Pair],
    engine: LLMEngine,
    start: Start,
    config: EngineConfig,
    prompt: str,
    steps: int,
    report: TaskProgress,
) -> None:
    try:
        found.set_result(run_both(engine, start, config, prompt, steps, report))
    except BaseException as error:  # the page that waits gets it
        found.set_exception(error)


def run_both(
    engine: LLMEngine, start: Start, config: EngineConfig, prompt: str, steps: int, report: TaskProgress
) -> Pair:
    """Step the model as it is loaded and in bfloat16. Stopped early, it shows the steps that were made."""
    total = LOADING + steps
    report(0, total, say("two_precisions.loading"))
    second = start(
        replace(config, model=engine.info.folder or engine.info.id, dtype="bfloat16"),
        lambda text, fraction: report(int(LOADING * fraction), total, f"{text},"),
    )
    try:
        return _steps(
            (engine, second), prompt, steps, lambda done: report(LOADING + done, total, say("two_precisions.stepping"))
        )
    finally:
        second.close()
        del second
        settle_memory()


def _steps(engines: Sequence[LLMEngine], prompt: str, steps: int, told: Callable[[int], None]) -> Pair:
    encoded = engines[0].tokenizer.encode(prompt)  # raises where there is no token
    rules = StopRules(use_end_ids=False, max_new_tokens=steps + 1)
    sessions: list[DecodeSession] = []
    try:
        rates = [each.measure_machine().result() for each in engines]
        for each in engines:
            sessions.append(each.create_session(sampling=GREEDY, stop=rules))
            sessions[-1].prefill(encoded).result()
        for done in range(steps):
            try:
                told(done)
            except Stopped:
                if done == 0:
                    raise
                break
            for session in sessions:
                session.step().result()
        first, second = (
            _run(each, session, rate.gemv_bytes_per_s.best)
            for each, session, rate in zip(engines, sessions, rates, strict=True)
        )
        drawn = sorted({*first.token_ids, *second.token_ids})
        pieces = dict(zip(drawn, token_labels(engines[0], drawn), strict=True))
        return Pair((first, second), prompt, pieces)
    finally:
        for session in sessions:
            session.close()


def _run(engine: LLMEngine, session: DecodeSession, bandwidth: float) -> PrecisionRun:
    records = session.records
    decode = [record for record in records if record.phase == "decode" and record.timing]
    size = engine.info.weight_bytes // engine.info.parameters
    moved = step_bytes(engine.info.shape, records[-1].kv_len - 1, weight_dtype_bytes=size, kv_dtype_bytes=size)
    return PrecisionRun(
        dtype=engine.info.dtype,
        token_ids=tuple(record.emitted_ids[0] for record in records),
        forward_ms=tuple(record.timing.forward_ms for record in decode if record.timing),
        weight_bytes=engine.info.weight_bytes,
        kv_bytes=records[-1].kv_bytes,
        bandwidth=bandwidth,
        floor_ms=moved / bandwidth * 1e3,
    )
