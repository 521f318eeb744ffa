"""What the server holds once a thousand tabs have been opened and dropped, each with its page and its line."""

from __future__ import annotations

import asyncio

import psutil

from benchmarks.app import RunningApp
from benchmarks.load.connection import Connection
from benchmarks.load.page import Page
from benchmarks.load.run import one_visitor, settled_bytes
from benchmarks.load.server import load_server
from benchmarks.results import Row
from engine.config import EngineConfig

WARM_UP = 100  # what is allocated once only is allocated by then
AT_ONCE = 4
PATIENCE_S = 60.0


def dropped_connections(model: str, count: int) -> list[Row]:
    """How much larger the server is after `count` tabs that were opened, and lost without a word."""
    with load_server(model, EngineConfig().max_batch) as app:
        return asyncio.run(_drop(app, count))


async def _drop(app: RunningApp, count: int) -> list[Row]:
    server = psutil.Process(app.pid)
    await one_visitor(app.url, seed=0)
    await _open_and_drop(app.url, WARM_UP)
    before = await settled_bytes(server)
    await _open_and_drop(app.url, count)
    after = await settled_bytes(server)
    parts = {"before_mb": before / 1e6, "after_mb": after / 1e6, "kb_per_tab": (after - before) / count / 1e3}
    return [Row(f"the server after {count:,} tabs opened and dropped", (after - before) / 1e6, "MB", parts=parts)]


async def _open_and_drop(url: str, count: int) -> None:
    left = iter(range(count))

    async def one_after_the_other() -> None:
        for _ in left:
            page = Page(await Connection.open(url))
            await asyncio.wait_for(page.start(), PATIENCE_S)
            await page.stop()
            page.connection.vanish()

    await asyncio.gather(*(one_after_the_other() for _ in range(AT_ONCE)))
