"""How the labs write numbers, and what a chart brings along: its picture's name, its table, its CSV."""

from __future__ import annotations

import csv
import io
import json
from math import inf, nan

import plotly.graph_objects as go
import pytest
from streamlit.testing.v1 import AppTest

from explorer.labs.charts import csv_text, file_name, number_text, plain_times, template
from explorer.pages.theme import PALETTES


@pytest.mark.parametrize(
    ("value", "unit", "written"),
    [
        (131_072, "B", "131 kB"),
        (0.00254, "s", "2.54 ms"),
        (46_080, "B", "46.1 kB"),
        (999_600, "B", "1.00 MB"),  # rounds up into the next prefix
        (37, "B", "37 B"),
        (1.5, "", "1.50"),
        (0, "B", "0 B"),
        (-2_500_000, "FLOP/s", "−2.50 MFLOP/s"),
        (9.891e14, "FLOP/s", "989 TFLOP/s"),
        (inf, "tokens", "∞ tokens"),
        (nan, "", "not a number"),
    ],
)
def test_numbers_have_three_digits_and_a_prefix(value: float, unit: str, written: str):
    assert number_text(value, unit) == written


def test_csv_reads_back_as_the_rows():
    rows = [{"context, tokens": 16, "said": 'a "b"'}, {"context, tokens": 32, "said": "c\nd"}]
    read = list(csv.DictReader(io.StringIO(csv_text(rows))))
    assert read == [{name: str(value) for name, value in row.items()} for row in rows]


def test_no_rows_are_an_empty_sheet():
    assert csv_text([]).strip() == ""


def test_a_saved_file_is_named_for_its_chart():
    assert file_name("kv_against_context: 70B") == "loupe-kv-against-context-70b"


@pytest.mark.parametrize("name", ["light", "dark"])
def test_traces_take_the_pages_colours_in_turn(name):
    colours = PALETTES[name]
    made = template(colours)
    assert made.layout.paper_bgcolor == colours.card
    assert made.layout.colorway[:2] == (colours.accent, colours.forced)
    assert len(set(made.layout.colorway)) == len(made.layout.colorway)


def chart_page() -> None:
    import plotly.graph_objects as go

    from explorer.labs import charts

    figure = go.Figure(go.Scatter(x=[1, 2], y=[3, 4]), layout={"title": "Bytes against tokens"})
    charts.show(figure, key="bytes", table=[{"tokens": 1, "bytes": 3}, {"tokens": 2, "bytes": 4}])


def test_a_chart_has_a_name_for_the_ear_and_a_table_with_its_numbers():
    page = AppTest.from_function(chart_page).run()
    assert not page.exception
    (chart,) = page.get("plotly_chart")
    assert chart.proto.alt == "Bytes against tokens"
    config = json.loads(chart.proto.config)
    assert config["toImageButtonOptions"]["filename"] == "loupe-bytes"
    assert config["toImageButtonOptions"]["format"] == "png"
    (table,) = page.table
    assert table.value.to_dict("list") == {"tokens": [1, 2], "bytes": [3, 4]}


def test_the_picture_can_be_saved_as_svg():
    page = AppTest.from_function(chart_page).run()
    page.segmented_control[0].select("SVG").run()
    assert json.loads(page.get("plotly_chart")[0].proto.config)["toImageButtonOptions"]["format"] == "svg"


def test_drawing_a_figure_leaves_it_as_it_was():
    figure = go.Figure(layout={"title": "kept"})
    before = figure.to_json()
    template(PALETTES["dark"])
    assert figure.to_json() == before


@pytest.mark.parametrize(
    ("title", "is_plain"), [("milliseconds so far", True), ("forward, ms", True), ("FLOPs", False)]
)
def test_an_axis_in_milliseconds_gets_no_second_prefix(title: str, is_plain: bool):
    figure = plain_times(go.Figure().update_yaxes(title=title))
    assert (figure.layout.yaxis.exponentformat, figure.layout.yaxis.separatethousands) == (
        ("none", True) if is_plain else (None, None)
    )


def test_a_table_by_itself_is_saved_as_csv_too():
    def table_page() -> None:
        from explorer.labs import charts

        charts.table([{"tokens": 1, "bytes": "1,024"}], name="sizes")

    page = AppTest.from_function(table_page).run()
    assert not page.exception
    (button,) = page.get("download_button")
    assert (button.proto.label, button.proto.id.endswith("sizes_csv")) == ("CSV", True)
    assert csv_text([{"tokens": 1, "bytes": "1,024"}]) == 'tokens,bytes\n1,"1,024"\n'
