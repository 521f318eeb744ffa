"""What eight students notice of a tab beside them that asks without end for whatever costs most.

Each act is done over and over for a while, after a while without it: the others' clicks of the one are held against
their clicks of the other. Whoever sees the ratio fall need not know how fast this machine is.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from websockets.exceptions import ConnectionClosed

from benchmarks.load.connection import Connection
from benchmarks.load.page import Answer, Page
from benchmarks.load.run import one_visitor
from benchmarks.load.seen import Seen, percentile
from benchmarks.load.server import load_server
from benchmarks.load.student import ARTICLE_PHRASES, WORDS, Plan, Student
from benchmarks.results import Row
from engine.config import EngineConfig

STUDENTS, EVERY_S = 8, 1.0
SLOWER_AT_MOST = 1.33
SETTLE_S = 5.0  # after everybody has come
PATIENCE_S = 120.0
IN_FLIGHT = 8
FLOOD = 10_000


class Abuser:
    """One tab. `rounds` counts what was answered, `refused` what of that was refused."""

    def __init__(self, url: str, seed: int) -> None:
        self.rounds = self.refused = 0
        self._url = url
        self._random = random.Random(seed)
        self._page: Page | None = None

    async def prefill(self, phrases: int) -> None:
        """A run of its own, of a prompt nobody has had."""
        await self._ask("prefill", prompt=" ".join(self._random.choices(WORDS, k=phrases)), mode="raw")

    async def again(self, op: str, **args: Any) -> None:
        """The same command once more."""
        await self._ask(op, **args)

    async def what_ifs(self) -> None:
        """Eight at once, each under other settings."""
        settings = [{"temperature": 0.1 + self._random.random(), "top_k": 50} for _ in range(IN_FLIGHT)]
        await asyncio.gather(*(self._ask("what_if", step=0, sampling=each) for each in settings))

    async def flood(self) -> None:
        """More commands than anybody waits for, without reading what comes back."""
        connection = await Connection.open(self._url)
        page = Page(connection)
        try:
            await page.start()
            for n in range(1, FLOOD + 1):
                await connection.say({"n": n, "op": "step", "args": {}})
                self.rounds += 1
        except ConnectionClosed:
            pass
        finally:
            await page.stop()
            connection.vanish()  # its end is full: no farewell would be read

    async def open(self) -> None:
        """Come in."""
        self._page = Page(await Connection.open(self._url))
        await asyncio.wait_for(self._page.start(), PATIENCE_S)

    async def leave(self) -> None:
        """End what is under way, and close the tab."""
        assert self._page is not None, "only who is there can leave"
        await self._page.stop()
        await self._page.connection.close()

    async def _ask(self, op: str, **args: Any) -> Answer:
        assert self._page is not None, "a page is opened first"
        answer = await asyncio.wait_for(self._page.send(op, **args), PATIENCE_S)
        self.rounds += 1
        self.refused += answer.error is not None
        return answer


@dataclass(frozen=True, slots=True)
class Act:
    """Something done over and over. `phrases` long is the prompt that it is done to."""

    phrases: int
    once: Callable[[Abuser], Awaitable[None]]


ACTS: Mapping[str, Act] = {
    "checks of 1,000 tokens": Act(ARTICLE_PHRASES, lambda one: one.again("check")),
    "short checks": Act(2, lambda one: one.again("check")),
    "layer times": Act(2, lambda one: one.again("layer_times", step=1)),
    "the blocks of a step": Act(2, lambda one: one.again("blocks", step=1)),
    "prefills of 1,000 tokens": Act(2, lambda one: one.prefill(ARTICLE_PHRASES)),
    "maps of 1,000 tokens": Act(ARTICLE_PHRASES, lambda one: one.again("triangle", layer=0, head=0)),
    "rows of 1,000 tokens": Act(ARTICLE_PHRASES, lambda one: one.again("prompt_rows")),
    "eight what-ifs at once": Act(2, lambda one: one.what_ifs()),
    "10,000 steps at once": Act(2, lambda one: one.flood()),
}


def abuse(model: str, seconds: float, seed: int, only: str = "") -> list[Row]:
    """One row for each act whose name holds `only`: `seconds` without it, `seconds` with it."""
    acts = {name: act for name, act in ACTS.items() if only in name}
    with load_server(model, EngineConfig().max_batch) as app:
        return asyncio.run(_beside(app.url, acts, seconds, seed))


async def _beside(url: str, acts: Mapping[str, Act], seconds: float, seed: int) -> list[Row]:
    await one_visitor(url, seed)
    seen, now = Seen(), time.perf_counter()
    plan = Plan(url, seed, STUDENTS, EVERY_S, False, 1.0, 1e9, counts_from=now, until=now + 1e9)
    students = [Student(number, plan, seen, "clicks") for number in range(STUDENTS)]
    pressing = [asyncio.create_task(student.attend(now)) for student in students]
    try:
        await asyncio.sleep(SETTLE_S)
        rows = [await _row(name, act, Abuser(url, seed), seen, seconds) for name, act in acts.items()]
    finally:
        for task in pressing:
            task.cancel()
        await asyncio.gather(*pressing, return_exceptions=True)
    for student in students:
        await student.leave()
    faults = seen.errors.total() + seen.lost + seen.doubled
    return [*rows, Row("beside the abusive tab: errors, lost and doubled presses", faults, "", "at most", 0.0)]


async def _row(name: str, act: Act, abuser: Abuser, seen: Seen, seconds: float) -> Row:
    await abuser.open()
    await abuser.prefill(act.phrases)
    await abuser.again("step")
    abuser.rounds = abuser.refused = 0
    began = time.perf_counter()
    await asyncio.sleep(seconds)
    looping = asyncio.create_task(_loop(act, abuser))
    between = time.perf_counter()
    await asyncio.sleep(seconds)
    ended = time.perf_counter()
    looping.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await looping
    await abuser.leave()
    await asyncio.sleep(SETTLE_S)  # clicks that were slow have their answer now
    before, during = clicks(seen, began, between), clicks(seen, between, ended)
    parts = {
        "p95_before_ms": percentile(before, 0.95),
        "p95_during_ms": percentile(during, 0.95),
        "clicks_before": float(len(before)),
        "clicks_during": float(len(during)),
        "rounds": float(abuser.rounds),
        "refused": float(abuser.refused),
    }
    slower = [percentile(during, share) / max(1e-9, percentile(before, share)) for share in (0.95, 0.5)]
    what = f"eight students beside {name}: click to token, 95th percentile, by that without"
    row = Row(what, slower[0], "x", "at most", SLOWER_AT_MOST, slower[1], parts)
    print(f"{name}: {', '.join(f'{key} {value:.0f}' for key, value in parts.items())}", flush=True)
    return row


async def _loop(act: Act, abuser: Abuser) -> None:
    while True:
        await act.once(abuser)


def clicks(seen: Seen, began: float, ended: float) -> list[float]:
    """Milliseconds of those that were pressed in between."""
    return [step.click_ms for step in seen.drawn if began <= step.at - step.click_ms / 1e3 < ended]
