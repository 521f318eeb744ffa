"""The script of a browser component: one module, with the sentences that it says in front."""

from __future__ import annotations

from pathlib import Path

from explorer.components.module_bundle import bundle_js, needed_for, read_sources
from explorer.components.page_words import words_script

ASSETS = Path(__file__).resolve().parents[2] / "assets"


def script_of(entry: str) -> str:
    """The module of `entry`, a path in assets/, with everything that it imports and says."""
    sources = needed_for(entry, read_sources(ASSETS, ".js"))
    return f"{words_script(sources.values())}{bundle_js(sources, entry)}"
