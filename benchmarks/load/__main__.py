"""Run the classes that are asked for, with and without batching, and print and keep what they saw."""

from __future__ import annotations

import argparse
import datetime
import itertools
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.load.abuse import abuse
from benchmarks.load.connections import dropped_connections
from benchmarks.load.report import HEAD, Summary, columns, line, rows, summarise
from benchmarks.load.run import Wanted, run
from benchmarks.machine import describe, short_name
from benchmarks.results import Row, table, write

RESULTS = Path(__file__).resolve().parents[1] / "results"
MOST_CLIENTS, LONGEST_S = 1_000, 600.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code: 1 where a step was lost or doubled, or anything went wrong."""
    args = _parser().parse_args(arguments)
    machine = describe()
    summaries: list[Summary] = []
    details: list[dict[str, object]] = []
    found: list[Row] = []
    path = RESULTS / f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}-{short_name()}-load.json"
    modes = {"both": (True, False), "on": (True,), "off": (False,)}[args.batching]
    if args.abuse or args.connections:
        found += abuse(args.model, args.seconds, args.seed, args.only) if args.abuse else []
        found += dropped_connections(args.model, args.connections) if args.connections else []
        path = path.with_name(path.name.replace("-load", "-load-beside"))
        write(path, machine, found)
        print(f"\n{table(found)}\n\nwritten to {path}")
        return 0
    print("  ".join(HEAD), flush=True)
    for clients, batching in itertools.product(args.clients, modes):
        wanted = Wanted(
            clients=clients,
            seconds=args.seconds,
            batching=batching,
            seed=args.seed,
            every_s=args.every,
            play_rate=args.play_rate,
            habit_every_s=args.habit_every,
            stepping=args.stepping,
            together=args.together,
            model=args.model,
        )
        seen, used = run(wanted)
        summaries.append(summarise(wanted, seen, used))
        details.append({"wanted": asdict(wanted), **asdict(summaries[-1]), "errors_seen": dict(seen.errors)})
        print("  ".join(line(summaries[-1])), *(f"\n    {n} x {e}" for e, n in seen.errors.items()), flush=True)
        found = [row for summary in summaries for row in rows(summary)]
        write(path, machine | {"runs": details}, found)  # after each run: a long evening may end early
    print(f"\n{columns([HEAD, *map(line, summaries)])}\n\n{table(found)}\n")
    print(f"written to {path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}")
    return 1 if any(s.errors or s.lost or s.doubled or s.unanswered for s in summaries) else 0


def _parser() -> argparse.ArgumentParser:
    words = argparse.ArgumentParser(
        prog="python -m benchmarks.load", description="Send classes of students to a server on this machine."
    )
    words.add_argument("--clients", type=_clients, nargs="+", default=[1, 8, 32, 100, 300], help="sizes of class")
    words.add_argument("--stepping", type=int, default=100, help="of them at most so many press, the rest look")
    words.add_argument("--seconds", type=_seconds, default=30.0, help="counted time of each run (default: %(default)s)")
    words.add_argument("--batching", choices=("both", "on", "off"), default="both")
    words.add_argument("--every", type=_seconds, default=3.0, help="mean time between presses (default: %(default)s s)")
    words.add_argument("--together", action="store_true", help="everybody presses at the same moment")
    words.add_argument("--play-rate", type=_seconds, default=2.0, help="autoplay's steps per second")
    words.add_argument("--habit-every", type=_seconds, default=30.0, help="between two essays of one student, ...")
    words.add_argument("--seed", type=int, default=0, help="of who presses when")
    words.add_argument("--abuse", action="store_true", help="instead: eight students beside a tab that asks too much")
    words.add_argument("--only", default="", help="of what that tab does, what has this in its name")
    words.add_argument("--connections", type=int, default=0, help="instead: memory after so many tabs came and went")
    words.add_argument("--model", default="", help="another model than the bundled one")
    return words


def _clients(text: str) -> int:
    number = int(text)
    if not 1 <= number <= MOST_CLIENTS:
        raise argparse.ArgumentTypeError(f"from 1 to {MOST_CLIENTS} clients, not {number}")
    return number


def _seconds(text: str) -> float:
    number = float(text)
    if not 0.05 <= number <= LONGEST_S:
        raise argparse.ArgumentTypeError(f"from 0.05 to {LONGEST_S:g}, not {text}")
    return number


if __name__ == "__main__":
    raise SystemExit(main())
