"""What a browser component is made of: one module, with the sentences that it says in front, and one style sheet."""

from __future__ import annotations

from pathlib import Path

from explorer.components.module_bundle import bundle_css, bundle_js, needed_for, read_sources
from explorer.components.page_words import words_script

ASSETS = Path(__file__).resolve().parents[2] / "assets"
COLOURS, COLOURED = "step_page/style/colours.css", ".loupe"


def script_of(entry: str) -> str:
    """The module of `entry`, a path in assets/, with everything that it imports and says."""
    sources = needed_for(entry, read_sources(ASSETS, ".js"))
    return f"{words_script(sources.values())}{bundle_js(sources, entry)}"


def styles_of(*own: str, root: str = COLOURED) -> str:
    """The Step page's colours for what the selector `root` finds, then own sheets by their paths in assets/."""
    sheets = read_sources(ASSETS, ".css")
    return bundle_css({COLOURS: sheets[COLOURS].replace(COLOURED, root), **{name: sheets[name] for name in own}})
