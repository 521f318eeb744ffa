"""One HTML file that plays a recording anywhere: the Step page's own scripts and styles, and the recording in base64.

It asks nobody for anything: no server, no network, no storage. A policy in its head forbids it.
"""

from __future__ import annotations

import base64
import html
from functools import cache

from explorer.components.component_source import ASSETS, script_of
from explorer.components.module_bundle import bundle_css, read_sources
from explorer.components.page_values import page_values

ENTRY = "player/player.js"
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)


def page_of(recording: bytes, *, title: str) -> str:
    """A page that plays a `.loupe` file."""
    data = base64.b64encode(recording).decode()
    return (
        "<!doctype html>\n"
        '<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{html.escape(POLICY)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(' '.join(title.split())[:80])} · Loupe</title>"
        f"<style>{_styles()}</style></head><body><main></main>"
        f'<script type="application/octet-stream" id="recording">{data}</script>'
        f'<script type="module">{_script()}</script></body></html>\n'
    )


@cache
def _script() -> str:
    return _inside_html(f"{page_values()}{script_of(ENTRY)}\nplayer(document.querySelector('main'));\n")


@cache
def _styles() -> str:
    sheets = {**read_sources(ASSETS / "step_page", ".css"), **read_sources(ASSETS / "player", ".css")}
    return _inside_html(bundle_css(sheets))


def _inside_html(source: str) -> str:
    """A script or a sheet that may stand in a page: nothing in it ends its element."""
    assert "<!--" not in source, "a comment of HTML in a script changes how the rest is read"
    return source.replace("</script", "<\\/script").replace("</style", "<\\/style")
