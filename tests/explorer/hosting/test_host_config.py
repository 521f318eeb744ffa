"""Streamlit's own dialogs stay away from the page; the rest of its settings, and of its answers, are as they were."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from explorer.hosting.host_config import HostConfig

GIVEN = {"allowedOrigins": ["https://a.test"], "blockErrorDialogs": False}


async def answer(request: Request) -> JSONResponse:
    return JSONResponse(GIVEN, headers={"cache-control": "no-cache"})


def test_only_the_dialogs_are_switched_off():
    paths = ("/class/_stcore/host-config", "/_stcore/other")
    app = Starlette(routes=[Route(path, answer) for path in paths], middleware=[Middleware(HostConfig)])
    client = TestClient(app)
    settings, other = (client.get(path) for path in paths)
    assert settings.json() == {**GIVEN, "blockErrorDialogs": True}
    assert settings.headers["cache-control"] == "no-cache"
    assert int(settings.headers["content-length"]) == len(settings.content)
    assert other.json() == GIVEN
    assert client.get("/nothing/_stcore/host-config").status_code == 404
