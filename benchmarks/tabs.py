"""What a thousand tabs leave behind that were opened and abandoned: `python -m benchmarks.tabs`.

Tabs and the real engine, without a browser and without a line: each tab is given what a page would say, and is left
without a word. A clock of our own lets grace period and memory of the recipe pass at once. What is counted between
rounds is what the process holds once everybody is gone and forgotten. Shared prompts stay within a budget of their own,
and are dropped before each count.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from types import MappingProxyType

from benchmarks.sessions import settled_bytes
from engine.config import EngineConfig
from engine.serving.requests import at_once
from explorer.engines.pool import EnginePool
from explorer.hosting.leases import Lease, Limits, Registry
from explorer.hosting.limits import IN_A_CLASS, Hosting
from explorer.hosting.runtime import Runtime, engine_config
from explorer.live.messages import Command
from explorer.live.page_frame import PageFrames

PROMPTS = tuple(f"Exercise {number}: the cat sat on the" for number in range(12))
STEP: tuple[str, Mapping[str, object]] = ("step", MappingProxyType({}))
ROUNDS = 5
LOOK_EVERY_S = 0.002
WAYS = (0, 1, 1, 2, 1, 1, 1, 3)  # of leaving, see open_and_leave: most have only prefilled something


@dataclass(frozen=True, slots=True)
class Held:
    """What is there while nobody is.

    python_objects  as the garbage collector counts them, less the forwards that the engine remembers one by one
    places          sessions in the engine's table; kv_bytes is what they hold
    users           of the model, by the pool's count
    """

    tabs_so_far: int
    process_bytes: int
    python_objects: int
    threads: int
    tabs_known: int
    places: int
    kv_bytes: int
    prefix_bytes: int
    users: int


class Clock:
    """Seconds that pass when we say so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Abandoned:
    """Opens tabs, one after the other, and leaves them in every way that somebody can."""

    def __init__(self, model: str) -> None:
        hosting = Hosting(mode="hosted", model=model, **IN_A_CLASS)  # type: ignore[arg-type]
        self.clock = Clock()
        self.server = Runtime(EnginePool(engine_config(hosting)), Registry(Limits(), self.clock), hosting)
        self.loading = self.server.pool.request()
        self.engine = self.loading.future.result()

    async def open_and_leave(self, number: int) -> None:
        """One tab: only opened, prefilled, stepped and forked, or left while its prefill runs."""
        owner = f"visitor {number}"
        tab = self.server.open_tab(owner, {}, self.server.pool.request())
        prefill = ("prefill", {"prompt": PROMPTS[number % len(PROMPTS)], "mode": "raw"})
        ways = ((), (prefill,), (prefill, *[STEP] * 4, ("fork", {"step": 2}), STEP))
        way = WAYS[number % len(WAYS)]
        commands = ways[way] if way < len(ways) else (("prefill", {"prompt": f"{number} " * 110, "mode": "raw"}),)
        log = tab.log_of("page")
        tab.greet({}, lambda _: None)
        for n, (op, args) in enumerate(commands, 1):
            tab.take(log, Command(n, op, args))
        while way < len(ways) and log.done < len(commands):
            await asyncio.sleep(LOOK_EVERY_S)
        await PageFrames(tab, log, None).build(1, {})
        self.server.tabs.release(Lease(tab.sid, owner))
        self.clock.now += 20.0  # so three are within their grace period at any time
        self.server.tabs.reap()

    async def everybody_forgotten(self) -> None:
        """Let an hour pass."""
        for _ in range(2):
            self.clock.now += Limits().forget_s
            self.server.tabs.reap()
        while self.engine.counters().waiting:
            await asyncio.sleep(LOOK_EVERY_S)

    def held(self, so_far: int) -> Held:
        """Count, once what is free has been given back."""
        self.engine.submit("benchmark", at_once(self.engine.stepper.prefixes.clear)).result()
        used = settled_bytes()
        counters = self.engine.counters()
        return Held(
            tabs_so_far=so_far,
            process_bytes=used,
            python_objects=len(gc.get_objects()) - len(counters.recent),
            threads=threading.active_count(),
            tabs_known=len(self.server.tabs),
            places=counters.sessions,
            kv_bytes=counters.kv_reserved_bytes,
            prefix_bytes=counters.prefix_bytes,
            users=self.loading.users,
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one row before, and one after each round."""
    words = argparse.ArgumentParser(prog="python -m benchmarks.tabs", description=__doc__)
    words.add_argument("--tabs", type=int, default=1_000, help="opened and abandoned (default: %(default)s)")
    words.add_argument("--model", default=EngineConfig().model, help="a name, a folder or a .gguf file")
    args = words.parse_args(arguments)
    bench = Abandoned(args.model)
    asyncio.run(_rounds(bench, args.tabs))
    bench.server.pool.close()
    return 0


async def _rounds(bench: Abandoned, tabs: int) -> None:
    warm = 4 * len(PROMPTS)
    for number in range(warm):
        await bench.open_and_leave(number)
    await bench.everybody_forgotten()
    print("  ".join(known.name for known in fields(Held)), flush=True)
    show(bench.held(0))
    each = max(1, tabs // ROUNDS)
    for part in range(ROUNDS):
        for number in range(each):
            await bench.open_and_leave(warm + part * each + number)
        await bench.everybody_forgotten()
        show(bench.held((part + 1) * each))


def show(row: Held) -> None:
    """One row under the names."""
    print("  ".join(f"{value:,}".rjust(len(name)) for name, value in asdict(row).items()), flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
