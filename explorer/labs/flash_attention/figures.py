"""What is folded away in the lab: scores held at once, against the length of a prompt."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from explorer.labs.charts import number_text
from explorer.labs.flash_attention.traffic import Setting, Traffic

Series = tuple[str, str, str, str]  # field of Traffic, name, dash, formula

HELD: tuple[Series, ...] = (
    ("matrix", "Unfused: the whole square", "solid", "N²·b"),
    ("decode_row", "A decode step: one row", "dash", "N·b"),
    ("tile", "Tiled: one tile of scores, float32", "dot", "rows·columns·4"),
)


def matrix_figure(rows: Sequence[Traffic], setting: Setting, here: Traffic | None) -> go.Figure:
    """Bytes of the scores that must exist at once, against N."""
    return _curves("Scores held at once, one head", HELD, rows, setting, here)


def _curves(
    title: str, series: Sequence[Series], rows: Sequence[Traffic], setting: Setting, here: Traffic | None
) -> go.Figure:
    figure = go.Figure(layout={"title": title})
    for field, name, dash, formula in series:
        figure.add_scatter(
            x=[row.length for row in rows],
            y=[getattr(row, field) for row in rows],
            name=name,
            mode="lines",
            line={"dash": dash, "width": 3},
            customdata=[[number_text(getattr(row, field), "B"), f"{row.length:,}"] for row in rows],
            hovertemplate="%{customdata[0]}"
            f"<br>{formula}<br>N = %{{customdata[1]}}, {setting.words}<extra>{name}</extra>",
        )
    if here is not None:
        values = [getattr(here, field) for field, *_ in series]
        figure.add_scatter(
            x=[here.length] * len(values),
            y=values,
            name=f"this session, N = {here.length:,}",
            mode="markers",
            marker={"size": 12, "symbol": "diamond"},
            customdata=[number_text(value, "B") for value in values],
            hovertemplate="%{customdata}<extra>this session</extra>",
        )
    figure.update_xaxes(type="log", title="N, tokens")
    figure.update_yaxes(type="log", title="bytes per head and layer", exponentformat="power")
    return figure
