"""Words for a page that never comes because something between the browser and the server blocks WebSockets.

Streamlit draws everything over its own WebSocket, so where that cannot be opened its page stays empty, without a word.
What does come is the HTML: a few lines of script in it look whether anything was drawn, try a WebSocket, and say what
is wrong.
"""

from __future__ import annotations

from pathlib import Path

from starlette.types import ASGIApp, Receive, Scope, Send

from explorer.hosting.answers import answer_of

SCRIPT = Path(__file__).resolve().parents[2] / "assets" / "blocked_notice.js"
END = b"</body>"


class BlockedNotice:
    """Wraps an app, and puts the script into its HTML pages."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._tag = b"<script>" + SCRIPT.read_bytes() + b"</script>"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on; an HTML page with the script at its end."""
        if scope["type"] != "http" or scope["method"] != "GET" or "." in scope["path"].rpartition("/")[2]:
            await self._app(scope, receive, send)
            return
        answer = await answer_of(self._app, scope, receive)
        is_page = answer.status == 200 and answer.header(b"content-type").startswith(b"text/html")
        if is_page and not answer.header(b"content-encoding"):
            answer = answer.with_body(answer.body.replace(END, self._tag + END, 1))
        await answer.send(send)
