"""How long a teacher's step takes to reach a whole class that follows: `python -m benchmarks.following`.

A real server, one leader and a hundred followers on lines of their own, all from this one process, so what it takes to
read a hundred frames here is in the figures. A step's time runs from the leader's own frame to the last follower's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import Sequence

from websockets.asyncio.client import ClientConnection, connect

from benchmarks.app import running_app
from benchmarks.load.connection import Connection
from benchmarks.load.page import Page, Record
from explorer.live.frame import unpack
from explorer.live.messages import VERSION

FOLLOWERS, STEPS = 100, 30
BUDGET_MS = 150.0


class Screen:
    """One follower: when each step had arrived, and in how many bytes."""

    def __init__(self, line: ClientConnection) -> None:
        self.line = line
        self.arrived: dict[int, float] = {}
        self.bytes_of: dict[int, int] = {}

    @classmethod
    async def follow(cls, url: str, code: str, number: int) -> Screen:
        """Open a line as a follower's page does."""
        line = await connect(f"{url.replace('http', 'ws', 1)}/live-line", max_size=None, compression=None, proxy=None)
        opening = {"loupe": VERSION, "owner": f"follower-{number:08}-bench", "mount": "m", "query": f"follow={code}"}
        await line.send(json.dumps(opening))
        return cls(line)

    async def listen(self) -> None:
        """Note every step, until the line is closed."""
        async for raw in self.line:
            now = time.perf_counter()
            assert isinstance(raw, bytes), "frames are bytes"
            for step in unpack(raw)[0].get("steps", ()):  # type: ignore[union-attr]
                self.arrived.setdefault(step["index"], now)  # type: ignore[index, call-overload, arg-type]
                self.bytes_of.setdefault(step["index"], len(raw))  # type: ignore[index, call-overload, arg-type]


async def measure(url: str, followers: int, steps: int) -> tuple[list[float], int]:
    """Milliseconds of each step until the last follower has it, and the bytes of one such frame."""
    leader = Page(await Connection.open(url))
    await leader.start()
    came: dict[int, float] = {}

    def note(step: Record, at: float) -> None:
        came.setdefault(step["index"], at)

    leader.on_step = note
    await leader.send("prefill", prompt="The cat sat", mode="raw")
    answer = await leader.send("lead", address="http://127.0.0.1/")
    assert answer.value is not None, answer.error
    screens = [await Screen.follow(url, str(answer.value["code"]), n) for n in range(followers)]
    listening = [asyncio.create_task(screen.listen()) for screen in screens]
    while not all(0 in screen.arrived for screen in screens):
        await asyncio.sleep(0.01)
    for step in range(1, steps + 1):
        await leader.send("step")
        while not all(step in screen.arrived for screen in screens):
            await asyncio.sleep(0.001)
    for task in listening:
        task.cancel()
    took = [1e3 * (max(screen.arrived[n] for screen in screens) - came[n]) for n in range(1, steps + 1)]
    return took, screens[0].bytes_of[steps]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures."""
    words = argparse.ArgumentParser(prog="python -m benchmarks.following", description=__doc__)
    words.add_argument("--followers", type=int, default=FOLLOWERS)
    words.add_argument("--steps", type=int, default=STEPS)
    args = words.parse_args(arguments)
    with running_app() as url:
        took, size = asyncio.run(measure(url, args.followers, args.steps))
    ranked = sorted(took)
    p95 = ranked[int(0.95 * (len(ranked) - 1))]
    print(
        f"{args.followers} followers, {args.steps} steps: the last screen has a step {statistics.median(took):.0f} ms "
        f"after the leader's (p95 {p95:.0f} ms, budget {BUDGET_MS:.0f} ms); a frame of the last step has {size:,} bytes"
    )


if __name__ == "__main__":
    main()
