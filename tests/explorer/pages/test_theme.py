"""Numbers as people read them, and colours that the app's own theme has."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from explorer.pages.theme import PALETTES, format_bytes, format_count

ROOT = Path(__file__).resolve().parents[3]
CONFIG = ROOT / ".streamlit" / "config.toml"
COLOURS = (ROOT / "assets" / "step_page" / "style" / "colours.css").read_text()
TEXTS = ("text", "mute", "accent", "prompt", "template", "gen", "forced", "k", "v", "bad")
EDGES = ("faint", "control")


def page_colours(name: str) -> dict[str, str]:
    """The Step page's roles in one theme."""
    block = re.search(rf'\.loupe\[data-theme="{name}"\] {{(.*?)}}', COLOURS, re.DOTALL)
    assert block is not None
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block[1]))


def contrast(one: str, other: str) -> float:
    """WCAG's ratio of the relative luminances of two sRGB colours."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        red, green, blue = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (46_080, "46.1 kB"),
        (99_940, "99.9 kB"),
        (99_960, "100 kB"),
        (999_600, "1.0 MB"),
        (538_060_032, "538 MB"),
        (1_210_000_000, "1.2 GB"),
        (5 * 10**15, "5000 TB"),
    ],
)
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


def test_black_on_white_is_21_to_1():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


@pytest.mark.parametrize("name", ["light", "dark"])
def test_text_stands_out_4_5_to_1_and_the_parts_of_controls_3_to_1(name):
    colours = page_colours(name)
    for ground in ("bg", "card"):
        weak = [role for role in TEXTS if contrast(colours[role], colours[ground]) < 4.5]
        weak += [role for role in EDGES if contrast(colours[role], colours[ground]) < 3]
        assert not weak, f"on --{ground}"
    assert contrast(colours["on-accent"], colours["accent"]) >= 4.5
    assert colours["accent"] == PALETTES[name].accent, "charts and the page share one accent"


@pytest.mark.parametrize("name", ["light", "dark"])
def test_links_stand_out_and_the_tick_of_a_box_does(name):
    theme = tomllib.loads(CONFIG.read_text())["theme"][name]
    assert contrast(theme["linkColor"], theme["backgroundColor"]) >= 4.5
    assert contrast("#ffffff", theme["primaryColor"]) >= 3, "Streamlit draws ticks and knobs in white on it"
