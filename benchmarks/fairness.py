"""What one tab that loops heavy work does to the steps of eight others: `python -m benchmarks.fairness`.

Eight sessions step with a short think time, in windows with and without the ninth, one window after the other, so that
a busy moment of the machine hits both. Everything goes through `LLMEngine`: no browser, no server.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from benchmarks.results import Row, table
from engine.config import EngineConfig, StopRules
from engine.errors import LoupeError
from engine.llm_engine import LLMEngine
from engine.models.loader import load_model
from engine.session import DecodeSession
from engine.studies.self_check.check_numbers import check_numbers

CLIENTS = 8
THINK_S = (0.15, 0.45)  # between an answer and the next click
LONG, SHORT = 1_000, 12  # tokens of the prompts that are looked at
STEPS = 8  # taken after each of them
MOST_RISE = 4 / 3  # of the others' p95
ALONE = "nobody"

T = TypeVar("T")
Ask = Callable[[], Future[Any]]


class Clients:
    """Sessions that step until they are stopped. What each step took goes into `seen`, by what ran beside it."""

    def __init__(self, engine: LLMEngine) -> None:
        self.beside = ""
        self.seen: dict[str, list[float]] = {}
        self._ends = threading.Event()
        self._threads = [
            threading.Thread(target=self._step, args=(opened(engine, 32, seed), random.Random(seed)))
            for seed in range(CLIENTS)
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Let every client finish its step."""
        self._ends.set()
        for thread in self._threads:
            thread.join()

    def _step(self, session: DecodeSession, thinks: random.Random) -> None:
        while not self._ends.wait(thinks.uniform(*THINK_S)):
            beside, began = self.beside, time.perf_counter()
            session.step().result()
            if beside and beside == self.beside:
                self.seen.setdefault(beside, []).append((time.perf_counter() - began) * 1e3)


def opened(engine: LLMEngine, length: int, seed: int, steps: int = 0) -> DecodeSession:
    """A session over a random prompt, some steps taken."""
    session = engine.create_session(stop=StopRules(max_new_tokens=100_000, use_end_ids=False), seed=seed)
    session.prefill(tokens(length, random.Random(1_000 + seed))).result()
    for _ in range(steps):
        session.step().result()
    return session


def tokens(length: int, source: random.Random) -> tuple[int, ...]:
    """Any ids do: what a forward takes does not depend on which they are."""
    return tuple(source.randrange(1_000, 40_000) for _ in range(length))


@dataclass(frozen=True, slots=True)
class Looping:
    """What the ninth tab asks for, again and again, and the session that it asks."""

    session: DecodeSession
    ask: Ask

    def once(self) -> float:
        """ms of one."""
        began = time.perf_counter()
        self.ask().result()
        return (time.perf_counter() - began) * 1e3

    def loop(self, seconds: float) -> float:
        """Ask again and again for so long, then stop: ms of those that were done, each; infinite where none was."""
        began, done = time.perf_counter(), 0
        while (left := began + seconds - time.perf_counter()) > 0:
            future = self.ask()
            with suppress(TimeoutError):
                future.result(left)
                done += 1
        took = (time.perf_counter() - began) * 1e3
        self.session.cancel()
        with suppress(LoupeError):
            future.result()
        return took / done if done else float("inf")


def heavy_work(engine: LLMEngine) -> dict[str, Looping]:
    """Each kind of heavy work that one tab can ask for."""
    long, short = opened(engine, LONG, 100, STEPS), opened(engine, SHORT, 101, STEPS)
    reader, source = engine.create_session(), random.Random(5)
    last = engine.info.num_layers - 1
    return {
        "check, 1,000 tokens": Looping(long, lambda: check_numbers(long)),
        "check, short": Looping(short, lambda: check_numbers(short)),
        "layer times": Looping(short, lambda: short.layer_times(3)),
        "prefills of 1,000 tokens": Looping(reader, lambda: reader.prefill(tokens(LONG, source))),
        "triangle, 1,000 tokens": Looping(long, lambda: long.prompt_attention(last, 0)),
        "prompt rows, 1,000 tokens": Looping(long, lambda: long.prompt_rows()),
    }


def measure(engine: LLMEngine, kinds: Sequence[str], seconds: float) -> list[Row]:
    """One row for each kind of heavy work: the others' p95 beside it over their p95 alone."""
    work = heavy_work(engine)
    alone_ms = {kind: work[kind].once() for kind in kinds or work}
    clients, rows = Clients(engine), []
    try:
        for kind in kinds or work:
            before = f"{ALONE} before {kind}"
            for _half in range(2):
                _window(clients, before, partial(time.sleep, seconds / 2))
                beside_ms = _window(clients, kind, partial(work[kind].loop, seconds / 2))
            rows.append(_row(kind, clients.seen[before], clients.seen[kind], alone_ms[kind], beside_ms))
            print(rows[-1].what, {k: round(v, 1) for k, v in rows[-1].parts.items()}, flush=True)
    finally:
        clients.close()
    return rows


def _window(clients: Clients, name: str, during: Callable[[], T]) -> T:
    clients.beside = name
    result = during()
    clients.beside = ""
    return result


def _row(kind: str, alone: list[float], beside: list[float], alone_ms: float, beside_ms: float) -> Row:
    parts = {
        "p95_alone_ms": _p95(alone),
        "p95_beside_ms": _p95(beside),
        "median_alone_ms": statistics.median(alone),
        "median_beside_ms": statistics.median(beside),
        "steps_alone": len(alone),
        "steps_beside": len(beside),
        "heavy_alone_ms": alone_ms,
        "heavy_beside_ms": beside_ms,
    }
    rise = parts["p95_beside_ms"] / parts["p95_alone_ms"]
    return Row(f"p95 of a step beside {kind}", rise, "x", "at most", MOST_RISE, parts=parts)


def _p95(seen: list[float]) -> float:
    return statistics.quantiles(seen, n=20)[-1]


def main(arguments: Sequence[str] | None = None) -> int:
    words = argparse.ArgumentParser(prog="python -m benchmarks.fairness", description=__doc__)
    words.add_argument("--seconds", type=float, default=10, help="beside each kind, and without (default: %(default)s)")
    words.add_argument("--kinds", nargs="*", default=[], help="some of them only")
    words.add_argument("--json", action="store_true")
    args = words.parse_args(arguments)
    config = EngineConfig(device="cpu", dtype="float32")
    engine = LLMEngine(load_model(config), config)
    try:
        rows = measure(engine, args.kinds, args.seconds)
    finally:
        engine.close()
    print(json.dumps([{"what": r.what, "value": r.value, **r.parts} for r in rows]) if args.json else table(rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
