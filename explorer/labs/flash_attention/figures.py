"""What is folded away in the lab: scores held at once, against the length of a prompt."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from explorer.labs.charts import number_text
from explorer.labs.flash_attention.traffic import Setting, Traffic
from explorer.say import words_beside

say = words_beside(__file__)

Series = tuple[str, str, str, str]  # field of Traffic, name, dash, formula

HELD: tuple[Series, ...] = (
    ("matrix", say("figures.unfused"), "solid", "N²·b"),
    ("decode_row", say("figures.decode"), "dash", "N·b"),
    ("tile", say("figures.tiled"), "dot", "rows·columns·4"),
)


def matrix_figure(rows: Sequence[Traffic], setting: Setting, here: Traffic | None) -> go.Figure:
    """Bytes of the scores that must exist at once, against N."""
    return _curves(say("figures.title"), HELD, rows, setting, here)


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
            hovertemplate=say("figures.hover", formula=formula, words=setting.words, name=name),
        )
    if here is not None:
        values = [getattr(here, field) for field, *_ in series]
        figure.add_scatter(
            x=[here.length] * len(values),
            y=values,
            name=say("figures.session", length=f"{here.length:,}"),
            mode="markers",
            marker={"size": 12, "symbol": "diamond"},
            customdata=[number_text(value, "B") for value in values],
            hovertemplate=say.unfilled("figures.session_hover"),
        )
    figure.update_xaxes(type="log", title=say("figures.length"))
    figure.update_yaxes(type="log", title=say("figures.bytes"), exponentformat="power")
    return figure
