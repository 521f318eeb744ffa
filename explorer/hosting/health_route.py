"""Streamlit's health check, with the engine's own state in it: 503 where the engine has stopped answering.

The path is Streamlit's, so its routes cannot be replaced; what it answers is looked at on the way out.
"""

from __future__ import annotations

from collections.abc import Callable

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from explorer.hosting.answers import answer_of
from explorer.hosting.health import HealthReport

PATH = "/_stcore/health"


class HealthRoute:
    """Wraps an app."""

    def __init__(self, app: ASGIApp, look: Callable[[], HealthReport]) -> None:
        self._app = app
        self._look = look

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on but the health check."""
        if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD") or not scope["path"].endswith(PATH):
            await self._app(scope, receive, send)
            return
        answer = await answer_of(self._app, scope, receive)
        if answer.status != 200:  # Streamlit itself is not ready
            await answer.send(send)
            return
        report = self._look()
        status = 200 if report.is_well else 503
        words = f"ok\n{report.words}\n" if report.is_well else f"{report.words}\n"
        said = PlainTextResponse(words, status, headers={"cache-control": "no-cache"})
        await said(scope, receive, send)
