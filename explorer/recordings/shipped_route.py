"""`recordings/NAME.loupe`: a recording that ships with Loupe, as a file beside Streamlit's own."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from explorer.recordings.shipped import SHIPPED

ROUTE = "recordings/{name}.loupe"
HEADERS = {"x-content-type-options": "nosniff", "cache-control": "no-cache"}


def shipped(request: Request) -> Response:
    """The file of this name, or in words that there is none."""
    found = next((one for one in SHIPPED if one.name == request.path_params["name"]), None)
    if found is None:
        return PlainTextResponse("Loupe has no recording of this name.", 404, headers=HEADERS)
    return Response(found.file.read_bytes(), media_type="application/octet-stream", headers=HEADERS)
