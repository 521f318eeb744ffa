"""Words for a page that never comes because something between the browser and the server blocks WebSockets.

Streamlit draws everything over its own WebSocket, so where that cannot be opened its page stays empty, without a word.
What does come is the HTML: a few lines of script in it look whether anything was drawn, try a WebSocket, and say what
is wrong.
"""

from __future__ import annotations

from pathlib import Path

from starlette.types import ASGIApp, Message, Receive, Scope, Send

SCRIPT = Path(__file__).resolve().parents[2] / "assets" / "blocked_notice.js"
END = b"</body>"


class BlockedNotice:
    """Wraps an app, and puts the script into its HTML pages."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._tag = b"<script>" + SCRIPT.read_bytes() + b"</script>"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on; an HTML page with the script at its end."""
        if scope["type"] != "http" or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return
        held: list[Message] = []  # the start of an HTML page, until its end is there

        async def with_notice(message: Message) -> None:
            if message["type"] == "http.response.start" and _is_html(message):
                held.append(message)
                return
            if not held:
                await send(message)
                return
            held.append(message)
            if not message.get("more_body"):
                start, *parts = held
                body = b"".join(part.get("body", b"") for part in parts).replace(END, self._tag + END, 1)
                headers = [(name, value) for name, value in start["headers"] if name.lower() != b"content-length"]
                await send({**start, "headers": [*headers, (b"content-length", str(len(body)).encode())]})
                await send({"type": "http.response.body", "body": body})

        await self._app(scope, receive, with_notice)


def _is_html(start: Message) -> bool:
    headers = {name.lower(): value for name, value in start.get("headers", ())}
    is_plain = b"content-encoding" not in headers
    return start["status"] == 200 and is_plain and headers.get(b"content-type", b"").startswith(b"text/html")
