"""Charts of the labs: Plotly in the colours of the page, with the numbers beside the picture.

Every chart has a twin: the same numbers as a table that a screen reader can walk through, and as CSV.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import plotly.graph_objects as go
import streamlit as st

from explorer.pages.theme import PALETTES, Palette, ThemeName
from explorer.say import words_beside

say = words_beside(__file__)

Rows: TypeAlias = Sequence[Mapping[str, object]]

FONT = "Source Sans, Source Sans Pro, system-ui, sans-serif"
PLAIN_ROWS = 60  # a longer table scrolls in a box of its own
_PREFIXES = ("q", "r", "y", "z", "a", "f", "p", "n", "µ", "m", "", "k", "M", "G", "T", "P", "E", "Z", "Y", "R", "Q")


def show(figure: go.Figure, *, key: str, table: Rows, alt: str = "") -> None:
    """Draw `figure` across the page, and offer it as a picture and its numbers as a table and as CSV.

    key    names the chart on the page, and the files somebody saves
    table  one mapping a row, all with the same names
    alt    what the picture shows, in a sentence, for who cannot see it; the figure's title where it is empty
    """
    drawn = plain_times(go.Figure(figure))
    drawn.update_layout(template=template(palette()))
    name = file_name(key)
    kind = "svg" if st.session_state.get(_kind_key(key)) == "SVG" else "png"
    st.plotly_chart(
        drawn, theme=None, key=key, alt=alt or str(figure.layout.title.text or key), config=_config(name, kind)
    )
    _numbers(table, key, name)


def plain_times(figure: go.Figure) -> go.Figure:
    """Milliseconds have their prefix already: 300,000 on their axes, never 300k."""
    for axis in (*figure.select_xaxes(), *figure.select_yaxes()):
        if re.search(r"\b(ms|milliseconds)\b", axis.title.text or ""):
            axis.update(exponentformat="none", separatethousands=True)
    return figure


def palette() -> Palette:
    """The page's colours as they are now."""
    return PALETTES[theme_name()]


def theme_name() -> ThemeName:
    """Light or dark, as the reader has it."""
    return "light" if st.context.theme.type == "light" else "dark"


def template(colours: Palette) -> go.layout.Template:
    """Plotly's look in the page's colours: few hues, told apart by the colour-blind, on the page's own ground."""
    axis = {
        "gridcolor": colours.line,
        "linecolor": colours.line,
        "zerolinecolor": colours.line,
        "ticks": "outside",
        "tickcolor": colours.line,
        "automargin": True,
        "title": {"standoff": 12},
        "exponentformat": "SI",
    }
    layout = go.Layout(
        paper_bgcolor=colours.card,
        plot_bgcolor=colours.card,
        font={"family": FONT, "size": 15, "color": colours.text},
        colorway=[colours.accent, colours.forced, colours.generated, colours.key, colours.bad, colours.prompt],
        colorscale={"sequential": [[0, colours.card], [1, colours.accent]]},
        title={
            "x": 0,
            "xref": "container",
            "xanchor": "left",
            "y": 1,
            "yref": "container",
            "yanchor": "top",
            "pad": {"t": 14, "l": 16},
            "automargin": True,
            "font": {"size": 16, "color": colours.muted},
        },
        xaxis=axis,
        yaxis=axis,
        height=440,
        margin={"l": 16, "r": 16, "t": 24, "b": 16},
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "bgcolor": "rgba(0,0,0,0)"},
        hoverlabel={
            "bgcolor": colours.background,
            "bordercolor": colours.line,
            "font": {"family": FONT, "color": colours.text},
            "align": "left",
        },
        modebar={"bgcolor": "rgba(0,0,0,0)", "color": colours.muted, "activecolor": colours.accent},
    )
    heat = go.Heatmap(
        colorscale=[[0, colours.card], [1, colours.accent]], colorbar={"outlinewidth": 0, "thickness": 12}
    )
    return go.layout.Template(layout=layout, data={"heatmap": [heat]})


def number_text(value: float, unit: str = "") -> str:
    """A number as the labs write it, three digits and a prefix: 131072, "B" -> "131 kB"; 0.00254, "s" -> "2.54 ms"."""
    if not math.isfinite(value):
        return f"{'∞' if value > 0 else '−∞' if value < 0 else 'not a number'} {unit}".strip()
    if value == 0:
        return f"0 {unit}".strip()
    digits, power = f"{abs(value):.2e}".split("e")
    group = max(-10, min(10, int(power) // 3))
    shown = float(f"{digits}e{int(power) - 3 * group}")
    places = 0 if group == 0 and shown == int(shown) else max(0, 2 - (int(power) - 3 * group))
    sign = "−" if value < 0 else ""
    return f"{sign}{shown:.{places}f} {_PREFIXES[group + 10]}{unit}".strip()


def csv_text(rows: Rows) -> str:
    """The rows as CSV, the first row's names above."""
    sheet = io.StringIO()
    writer = csv.DictWriter(sheet, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return sheet.getvalue()


def plain(words: str) -> str:
    """Text for a chart's labels and hovers, where Plotly reads tags: it shows as it is written."""
    return words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def file_name(key: str) -> str:
    """A name for what somebody saves: "kv against context" -> "loupe-kv-against-context"."""
    return "loupe-" + re.sub(r"[^a-z0-9]+", "-", key.lower()).strip("-")


def _config(name: str, kind: str) -> dict[str, Any]:
    return {
        "displaylogo": False,
        "responsive": True,
        "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"],
        "toImageButtonOptions": {"format": kind, "filename": name, "scale": 2 if kind == "png" else 1},
    }


def numbers(rows: Rows, key: str) -> None:
    """The numbers of a picture: to read, and as CSV under its name."""
    name = file_name(key)
    st.download_button("CSV", csv_text(rows), f"{name}.csv", "text/csv", key=f"{key}_csv", on_click="ignore")
    _table(rows)


def _numbers(rows: Rows, key: str, name: str) -> None:
    with st.popover(say("charts.numbers"), key=f"{key}_numbers"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.download_button("CSV", csv_text(rows), f"{name}.csv", "text/csv", key=f"{key}_csv", on_click="ignore")
            st.segmented_control(say("charts.camera"), ["PNG", "SVG"], default="PNG", required=True, key=_kind_key(key))
        _table(rows)


def table(rows: Rows, *, name: str) -> None:
    """Rows as a table, and a button that saves them as CSV. `name` tells this table from the others of a page."""
    _table(rows)
    st.download_button("CSV", csv_text(rows), f"{name}.csv", "text/csv", key=f"{name}_csv", on_click="ignore")


def _table(rows: Rows) -> None:
    if len(rows) <= PLAIN_ROWS:
        st.table(list(rows), hide_index=True)
    else:
        st.dataframe(list(rows), hide_index=True)


def _kind_key(key: str) -> str:
    return f"{key}_kind"
