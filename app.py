"""Loupe: a magnifying glass for the decode loop. Start with `streamlit run app.py`.

What is drawn is in explorer/pages/main.py. Here is what stands around it: the gate that everything from outside passes,
a health check that asks the engine, and a model that begins to load with the server.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware

from explorer.gate.addresses import served_names
from explorer.gate.descriptors import raise_limit
from explorer.gate.gate import Gate
from explorer.gate.sizes import allow_large_frames
from explorer.hosting.connections import CONNECTIONS
from explorer.hosting.health_route import HealthRoute
from explorer.hosting.runtime import runtime

SCRIPT = Path(__file__).resolve().parent / "explorer" / "pages" / "main.py"


@asynccontextmanager
async def lifespan(_: st.App) -> AsyncIterator[None]:
    """Begin to load the model with the server, so that the first visitor does not wait for it alone."""
    allow_large_frames()
    raise_limit(runtime().hosting.max_sessions)
    runtime().health.look()
    yield


app = st.App(
    SCRIPT,
    lifespan=lifespan,
    middleware=[
        Middleware(Gate, names=served_names, connections=CONNECTIONS, script=str(SCRIPT)),
        Middleware(HealthRoute, look=lambda: runtime().health.look()),
    ],
)
