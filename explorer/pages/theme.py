"""Colours by role and numbers as people read them, for the parts of the page that Python draws.

The Step page takes its colours from Streamlit's theme variables; these are the same values for charts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ThemeName = Literal["light", "dark"]


@dataclass(frozen=True, slots=True)
class Palette:
    """One colour per role. Token roles are the only hues beside the accent and the two cache sides."""

    background: str
    card: str
    line: str
    text: str
    muted: str
    accent: str
    prompt: str
    generated: str
    forced: str
    key: str
    value: str
    bad: str


PALETTES: dict[ThemeName, Palette] = {
    "dark": Palette(
        background="#0d1015",
        card="#141920",
        line="#232b36",
        text="#e8ecf2",
        muted="#97a2b4",
        accent="#6690fa",
        prompt="#8fa3bf",
        generated="#35c2a0",
        forced="#f0a93b",
        key="#e08a5a",
        value="#5aa9e0",
        bad="#e0605a",
    ),
    "light": Palette(
        background="#f6f7f9",
        card="#ffffff",
        line="#dfe4ea",
        text="#18202b",
        muted="#5d6878",
        accent="#2f5fe0",
        prompt="#6b7f9c",
        generated="#0a8f70",
        forced="#b87200",
        key="#c05f28",
        value="#2277b8",
        bad="#c8443e",
    ),
}

_BYTE_UNITS = ("B", "kB", "MB", "GB", "TB")


def format_bytes(count: int) -> str:
    """Bytes in powers of 1,000 with three digits: 46,080 -> "46.1 kB"."""
    size = float(count)
    for unit in _BYTE_UNITS:
        if abs(size) < 999.5 or unit == _BYTE_UNITS[-1]:
            return f"{size:.0f} {unit}" if unit == "B" or abs(size) >= 99.95 else f"{size:.1f} {unit}"
        size /= 1000
    raise AssertionError("the last unit takes every size")


def format_count(count: int) -> str:
    """A whole number with thousands set apart: 49152 -> "49,152"."""
    return f"{count:,}"
