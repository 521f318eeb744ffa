"""`lessons/NAME/sheet`: a teacher's sheet, as a plain page beside Streamlit's own."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from explorer.hosting.runtime import runtime
from explorer.lessons.sheet import sheet_html
from explorer.lessons.shelf import SHELF, NoLesson

ROUTE = "lessons/{name}/sheet"
HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'",
    "x-content-type-options": "nosniff",
    "cache-control": "no-cache",
}


def sheet(request: Request) -> Response:
    """The sheet of a lesson, or in words that there is none."""
    try:
        lesson = SHELF.lesson(request.path_params["name"], tells_faults=not runtime().hosting.is_hosted)
    except NoLesson as error:
        return PlainTextResponse(str(error), 404, headers=HEADERS)
    return HTMLResponse(sheet_html(lesson), headers=HEADERS)
