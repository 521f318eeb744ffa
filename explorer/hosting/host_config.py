"""Streamlit's settings for its own page, with its error dialogs off.

A server that does not answer makes Streamlit lay a dialog over the page, and everything below it inert: recorded steps
could not be looked at. The Step page says by itself, in place, that the connection is lost and when it is tried again.
The path is Streamlit's, so its route cannot be replaced; what it answers is looked at on the way out.
"""

from __future__ import annotations

import json

from starlette.types import ASGIApp, Receive, Scope, Send

from explorer.hosting.answers import answer_of

PATH = "/_stcore/host-config"


class HostConfig:
    """Wraps an app."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on but these settings."""
        if scope["type"] != "http" or scope["method"] != "GET" or not scope["path"].endswith(PATH):
            await self._app(scope, receive, send)
            return
        answer = await answer_of(self._app, scope, receive)
        if answer.status == 200:
            answer = answer.with_body(json.dumps({**json.loads(answer.body), "blockErrorDialogs": True}).encode())
        await answer.send(send)
