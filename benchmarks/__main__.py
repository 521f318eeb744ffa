"""Print the table of budgets for this machine, and write it to benchmarks/results/."""

from __future__ import annotations

import argparse
import datetime
import gc
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import torch

from benchmarks.batch import batch_rows
from benchmarks.machine import describe, short_name
from benchmarks.results import Row, table, write
from benchmarks.sessions import session_rows
from benchmarks.setup import on, prepare
from benchmarks.start import start_rows
from benchmarks.step import choosing_row, engine_rows, step_rows
from engine.config import EngineConfig
from engine.starting import start

RESULTS = Path(__file__).parent / "results"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for; returns the exit code."""
    args = _parser().parse_args(arguments)
    machine, rows = measure(args.rounds, args.first_start)
    if args.browser:
        from benchmarks.browser import browser_rows

        rows += browser_rows()
    path = RESULTS / f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}-{short_name()}.json"
    write(path, machine, rows)
    print(
        f"\n{table(rows)}\n\n{machine['cpu']}, {machine['torch_threads']} threads, load {machine['load_average']:.1f}"
    )
    print(f"written to {path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}")
    return 0


def measure(rounds: int, first_ever: bool) -> tuple[dict[str, object], list[Row]]:
    """The machine and every row that needs no browser."""
    machine = describe()
    rows = start_rows(3, first_ever=first_ever)
    print(".", end="", flush=True)
    engine = start(EngineConfig(device="cpu", dtype="float32"))
    try:
        bench = on(engine, lambda: prepare(engine))
        kernels = [] if engine.kernels is None else [asdict(choice) for choice in engine.kernels.choices]
        machine |= {"torch_threads": on(engine, torch.get_num_threads), "kernels": kernels}
        gc.collect()
        gc.freeze()
        rows += engine_rows(bench, rounds)
        print(".", end="", flush=True)
        for part, turns in ((step_rows, rounds), (batch_rows, max(3, rounds // 5))):
            rows += on(engine, partial(part, bench, turns))
            print(".", end="", flush=True)
        rows.append(on(engine, partial(choosing_row, bench)))
        rows += session_rows(engine, rounds)
    finally:
        engine.close()
    return machine, rows


def _parser() -> argparse.ArgumentParser:
    words = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure this machine against the budgets."
    )
    words.add_argument("--rounds", type=int, default=30, help="rounds of each comparison (default: %(default)s)")
    words.add_argument("--first-start", action="store_true", help="also time a start that has to fetch the weights")
    words.add_argument("--browser", action="store_true", help="also time clicks in a headless browser")
    return words


if __name__ == "__main__":
    raise SystemExit(main())
