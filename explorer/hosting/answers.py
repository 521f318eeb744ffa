"""An answer of the app behind, taken in whole, so that a layer in front can look at it and change it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from starlette.types import ASGIApp, Message, Receive, Scope, Send


@dataclass(frozen=True, slots=True)
class Answer:
    """Status, headers and body of one answer."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes

    def header(self, name: bytes) -> bytes:
        """A header's value; empty where there is none."""
        return next((value for key, value in self.headers if key.lower() == name), b"")

    def with_body(self, body: bytes) -> Answer:
        """The same with another body."""
        kept = [(key, value) for key, value in self.headers if key.lower() != b"content-length"]
        return replace(self, headers=(*kept, (b"content-length", str(len(body)).encode())), body=body)

    async def send(self, send: Send) -> None:
        """Give it on."""
        await send({"type": "http.response.start", "status": self.status, "headers": list(self.headers)})
        await send({"type": "http.response.body", "body": self.body})


async def answer_of(app: ASGIApp, scope: Scope, receive: Receive) -> Answer:
    """What the app answers."""
    said: list[Message] = []

    async def keep(message: Message) -> None:
        said.append(message)

    await app(scope, receive, keep)
    start, *parts = said
    return Answer(start["status"], tuple(start.get("headers", ())), b"".join(part.get("body", b"") for part in parts))
