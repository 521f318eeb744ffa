"""Loupe: a magnifying glass for the decode loop. Start with `streamlit run app.py`.

What is drawn is in explorer/pages/main.py. Here is what stands around it: the gate that everything from outside passes,
the live line over which tabs and the decode loop speak, the teachers' sheets, the recordings that ship, a health check
that asks the engine, and a model that begins to load with the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware
from starlette.routing import Route, WebSocketRoute

from explorer.gate.addresses import served_names, under_base
from explorer.gate.descriptors import raise_limit
from explorer.gate.gate import Gate
from explorer.gate.sizes import allow_large_frames
from explorer.hosting.blocked_notice import BlockedNotice
from explorer.hosting.connections import CONNECTIONS
from explorer.hosting.health_route import HealthRoute
from explorer.hosting.host_config import HostConfig
from explorer.hosting.no_file_watcher import keep_files_unwatched
from explorer.hosting.runtime import runtime
from explorer.lessons.sheet_route import ROUTE as SHEET
from explorer.lessons.sheet_route import sheet
from explorer.live.live_line import ROUTE, live_line
from explorer.recordings.shipped_route import ROUTE as SHIPPED
from explorer.recordings.shipped_route import shipped

SCRIPT = Path(__file__).resolve().parent / "explorer" / "pages" / "main.py"


@asynccontextmanager
async def lifespan(_: st.App) -> AsyncIterator[None]:
    """Begin to load the model with the server, so that the first visitor does not wait for it alone."""
    there = runtime()
    there.loop = asyncio.get_running_loop()
    allow_large_frames()
    keep_files_unwatched()
    raise_limit(there.hosting.max_sessions)
    there.health.look()
    reaping = asyncio.create_task(there.reap_for_good())
    yield
    reaping.cancel()


app = st.App(
    SCRIPT,
    lifespan=lifespan,
    routes=[
        WebSocketRoute(under_base(ROUTE), live_line),
        Route(under_base(SHEET), sheet),
        Route(under_base(SHIPPED), shipped),
    ],
    middleware=[
        Middleware(Gate, names=served_names, connections=CONNECTIONS, script=str(SCRIPT)),
        Middleware(HostConfig),
        Middleware(BlockedNotice),
        Middleware(HealthRoute, look=lambda: runtime().health.look()),
    ],
)
