"""Loupe for a class: app.py, and a health check that asks the engine. Start with `streamlit run asgi.py`.

`streamlit run app.py` is the same app with Streamlit's own health check, which knows nothing of the engine.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware

from explorer.hosting.health_route import HealthRoute
from explorer.hosting.runtime import runtime


@asynccontextmanager
async def lifespan(_: st.App) -> AsyncIterator[None]:
    """Begin to load the model with the server, so that the first visitor does not wait for it alone."""
    runtime().health.look()
    yield


app = st.App(
    Path(__file__).parent / "app.py",
    lifespan=lifespan,
    middleware=[Middleware(HealthRoute, look=lambda: runtime().health.look())],
)
