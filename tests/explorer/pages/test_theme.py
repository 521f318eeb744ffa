"""Numbers as people read them, and colours that the app's own theme has."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from explorer.pages.theme import PALETTES, format_bytes, format_count

CONFIG = Path(__file__).resolve().parents[3] / ".streamlit" / "config.toml"


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (46_080, "46.1 kB"), (99_940, "99.9 kB"), (99_960, "100 kB"),
        (999_600, "1.0 MB"), (538_060_032, "538 MB"), (1_210_000_000, "1.2 GB"), (5 * 10**15, "5000 TB"),
    ],
)  # fmt: skip
def test_bytes_are_in_powers_of_1000(count, text):
    assert format_bytes(count) == text


def test_thousands_are_set_apart():
    assert format_count(49_152) == "49,152"


@pytest.mark.parametrize("name", ["light", "dark"])
def test_charts_have_the_colours_of_the_page(name):
    theme = tomllib.loads(CONFIG.read_text())["theme"][name]
    palette = PALETTES[name]
    assert (palette.background, palette.card, palette.text) == (
        theme["backgroundColor"],
        theme["secondaryBackgroundColor"],
        theme["textColor"],
    )
    assert (palette.accent, palette.line, palette.generated) == (
        theme["primaryColor"],
        theme["borderColor"],
        theme["greenColor"],
    )
