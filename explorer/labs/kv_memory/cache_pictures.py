"""Pictures of what is in the cache: which keys moved with the first token, and which step reads which query."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from engine.studies.key_records import KeyChange
from explorer.pages.theme import Palette
from explorer.say import words_beside

say = words_beside(__file__)

SIDES = ("keys", "values")


def moved(change: KeyChange, labels: Sequence[str], side: int, colours: Palette) -> go.Figure:
    """Relative change of keys (side 0) or values (1): layers down, positions across. What kept every bit is empty."""
    shown = np.where(change.same_bits[side], np.nan, change.moved[side]).astype(float)  # (L, N)
    ticks = [f"{label}<sub>{position}</sub>" for position, label in enumerate(labels)]
    figure = go.Figure(layout={"title": say("cache_pictures.moved_title", sides=SIDES[side].capitalize())})
    figure.add_heatmap(
        z=shown,
        x=list(range(len(labels))),
        y=list(range(shown.shape[0])),
        zmin=0,
        zmax=float(np.nanmax(shown)) if np.isfinite(shown).any() else 1.0,
        text=[[_word(change, side, layer, n) for n in range(len(labels))] for layer in range(shown.shape[0])],
        customdata=[list(labels)] * shown.shape[0],
        hoverongaps=True,
        hovertemplate=say.unfilled("cache_pictures.moved_hover"),
        colorbar={"title": {"text": say("cache_pictures.moved_scale")}},
        xgap=1,
        ygap=1,
    )
    few = len(labels) <= 40
    return figure.update_layout(
        height=max(260, 140 + 12 * shown.shape[0]),
        plot_bgcolor=colours.background,
        xaxis={
            "title": "position",
            "showgrid": False,
            "tickmode": "array" if few else "auto",
            "tickvals": list(range(len(labels))),
            "ticktext": ticks,
        },
        yaxis={"title": "layer", "autorange": "reversed", "showgrid": False},
    )


def _word(change: KeyChange, side: int, layer: int, position: int) -> str:
    if change.same_bits[side, layer, position]:
        return say("cache_pictures.same")
    return say("cache_pictures.moved", moved=f"{change.moved[side, layer, position]:.3g}")


def moved_words(change: KeyChange, side: int) -> str:
    """What the picture shows, in numbers; about the positions after the first."""
    name, later = SIDES[side], change.moved[side][:, 1:]
    if later.shape[1] == 0:
        return say("cache_pictures.no_later")
    kept = int(change.same_bits[side, 0, 1:].sum())
    count, layers = later.shape[1], later.shape[0]
    first = (
        say("cache_pictures.layer_0_same", count=count, name=name)
        if kept == count
        else say("cache_pictures.layer_0", kept=kept, count=count, name=name, later=f"{later[0].max():.1e}")
    )
    if layers == 1:
        return first
    above, rounding = later[1:], change.rounding[side].max()
    rest = (
        say(
            "cache_pictures.all_moved",
            layers=layers - 1,
            size=f"{above.size:,}",
            least=f"{above.min():.2g}",
            median=f"{np.median(above):.2g}",
            most=f"{above.max():.2g}",
        )
        if (above > 0).all()
        else say(
            "cache_pictures.some_moved",
            layers=layers - 1,
            moved=f"{int((above > 0).sum()):,}",
            size=f"{above.size:,}",
            median=f"{np.median(above):.2g}",
        )
    )
    return f"{first} {rest} {_rounding(rounding)}"


def _rounding(most: float) -> str:
    return say("cache_pictures.rounding", most=f"{most:.1e}") if most else say("cache_pictures.no_rounding")


def reads(prompt: int, steps: int) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    """(S, T) 1 where a step reads a token's key and value, and where it reads its query. Step 0 is the prefill.

    Step s feeds the token at position prompt + s - 1, and its query reads every key up to its own.
    """
    tokens = np.arange(prompt + steps - 1)
    newest = prompt - 1 + np.arange(steps)[:, None]
    keys = tokens <= newest
    queries = np.where(np.arange(steps)[:, None] == 0, tokens < prompt, tokens == newest)
    return keys.astype(np.int8), queries.astype(np.int8)


def who_reads(prompt: int, labels: Sequence[str], colours: Palette) -> go.Figure:
    """Two squares side by side: what each step reads of every token. `labels` name the tokens in the cache."""
    steps = len(labels) - prompt + 1
    figure = make_subplots(1, 2, shared_yaxes=True)
    figure.update_layout(title=say("cache_pictures.reads_title"))
    ticks = [f"{label}<sub>{position}</sub>" for position, label in enumerate(labels)]
    for column, (table, hue) in enumerate(zip(reads(prompt, steps), (colours.key, colours.accent), strict=True), 1):
        what = say("cache_pictures.key_value") if column == 1 else "query"
        figure.add_heatmap(
            z=table,
            zmin=0,
            zmax=1,
            colorscale=[[0, colours.background], [1, hue]],
            showscale=False,
            xgap=2,
            ygap=2,
            text=[["read" if cell else say("cache_pictures.not_read") for cell in row] for row in table],
            customdata=[list(labels)] * steps,
            hovertemplate=say("cache_pictures.reads_hover", what=what),
            row=1,
            col=column,
        )
    figure.update_xaxes(showgrid=False, tickmode="array", tickvals=list(range(len(labels))), ticktext=ticks)
    figure.update_yaxes(autorange="reversed", showgrid=False, dtick=1)
    return figure.update_layout(
        height=max(280, 170 + 20 * steps),
        yaxis={"title": "step"},
        xaxis={"title": say("cache_pictures.keys_values")},
        xaxis2={"title": "queries"},
    )
