"""One run: a fresh server, a class that comes, works and goes, and what both processes used meanwhile."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from dataclasses import dataclass

import psutil

from benchmarks.app import RunningApp
from benchmarks.load.seen import Seen
from benchmarks.load.server import load_server
from benchmarks.load.student import Plan, Student
from engine.config import EngineConfig

ARRIVE_S = 0.15  # between two students at the beginning
WARM_UP_S = 4.0  # after the last has come, until presses count
SETTLE_S = 1.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a run is asked to be. Rates and `stepping` as in `Plan`; `model` is empty for the bundled one."""

    clients: int
    seconds: float
    batching: bool
    seed: int
    every_s: float
    play_rate: float
    habit_every_s: float
    stepping: int = 100
    together: bool = False
    model: str = ""


@dataclass(frozen=True, slots=True)
class Used:
    """What a run took of the machine.

    counted_s     wall time during which presses counted
    server_cpu_s, client_cpu_s   processor time of each process in that time, over all threads
    sessions      that the server held at the end, with those that were left
    session_mb    growth of the server per session, keys and values included; beside_kv_mb without them
    load_average  over the last minute, when the run began and when it ended
    """

    counted_s: float
    server_cpu_s: float
    client_cpu_s: float
    sessions: int
    session_mb: float
    beside_kv_mb: float
    load_average: tuple[float, float]


def run(wanted: Wanted) -> tuple[Seen, Used]:
    """Start a server, send a class, count."""
    with load_server(wanted.model, EngineConfig().max_batch if wanted.batching else 1) as app:
        return asyncio.run(_class(app, wanted))


async def _class(app: RunningApp, wanted: Wanted) -> tuple[Seen, Used]:
    began_load = os.getloadavg()[0]
    server, own = psutil.Process(app.pid), psutil.Process()
    await one_visitor(app.url, wanted.seed)
    before = await settled_bytes(server)
    now = time.perf_counter()
    counts_from = now + wanted.clients * ARRIVE_S + WARM_UP_S
    seen = Seen()
    plan = Plan(
        url=app.url,
        seed=wanted.seed,
        stepping=wanted.stepping,
        every_s=wanted.every_s,
        together=wanted.together,
        play_rate=wanted.play_rate,
        habit_every_s=wanted.habit_every_s,
        counts_from=counts_from,
        until=counts_from + wanted.seconds,
    )
    students = [Student(number, plan, seen) for number in range(wanted.clients)]
    attending = asyncio.gather(*(student.attend(now + i * ARRIVE_S) for i, student in enumerate(students)))
    await asyncio.sleep(max(0.0, counts_from - time.perf_counter()))
    server_cpu, client_cpu = _cpu_s(server), _cpu_s(own)
    await asyncio.sleep(max(0.0, plan.until - time.perf_counter()))
    server_cpu, client_cpu = _cpu_s(server) - server_cpu, _cpu_s(own) - client_cpu
    await attending
    added = (await settled_bytes(server)) - before
    for student in students:
        await student.leave()
    sessions = max(1, len(seen.kv_bytes))
    used = Used(
        counted_s=wanted.seconds,
        server_cpu_s=server_cpu,
        client_cpu_s=client_cpu,
        sessions=sessions,
        session_mb=added / sessions / 1e6,
        beside_kv_mb=(added - sum(seen.kv_bytes.values())) / sessions / 1e6,
        load_average=(began_load, os.getloadavg()[0]),
    )
    return seen, used


async def one_visitor(url: str, seed: int) -> None:
    """The model is loaded, and what is allocated once only is allocated before anything is counted."""
    now = time.perf_counter()
    plan = Plan(url, seed, 1, 1.0, False, 1.0, 1.0, counts_from=now, until=now)
    visitor = Student(0, plan, Seen())
    await visitor.warm_up(steps=8)
    await visitor.leave()


async def settled_bytes(server: psutil.Process) -> int:
    """Resident bytes of the server once it has given back what is free."""
    server.send_signal(signal.SIGUSR1)
    await asyncio.sleep(SETTLE_S)
    return int(server.memory_info().rss)


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
