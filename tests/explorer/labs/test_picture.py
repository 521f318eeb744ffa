"""Pictures of the labs: where things stand is worked out here, and can be checked by hand."""

from __future__ import annotations

import pytest

from explorer.labs.picture import Bar, Bars, Level, Line, Part, Plot, Point, axis, log_axis, round_text


def test_a_log_axis_ends_at_powers_of_ten_and_has_few_numbers():
    sizes = log_axis("", 3e6, 2e9, "B")
    assert [words for _, words in sizes.ticks] == ["1 MB", "10 MB", "100 MB", "1 GB", "10 GB"]
    assert sizes.place(1e8) == pytest.approx(0.5)
    assert len(log_axis("", 1, 1e15).ticks) == 6  # every third power


def test_a_linear_axis_ends_at_the_next_round_number():
    assert [value for value, _ in axis("", 93).ticks] == [0, 25, 50, 75, 100]
    assert [value for value, _ in axis("", 47, is_cut=True).ticks] == [0, 20, 40]
    assert axis("", 47, is_cut=True).place(47) == 1
    assert [words for _, words in axis("", 0.9, "s").ticks] == ["0 s", "250 ms", "500 ms", "750 ms", "1 s"]


@pytest.mark.parametrize(("value", "written"), [(1e9, "1 GB"), (2.5e6, "2.5 MB"), (1e8, "100 MB"), (0, "0 B")])
def test_a_round_number_has_no_zeros_that_say_nothing(value: float, written: str):
    assert round_text(value, "B") == written


def test_what_is_off_the_axis_is_not_drawn_and_the_rest_keeps_its_words():
    drawn = Plot(
        "t", axis("x", 10), log_axis("y", 1, 100), [Line("a", [0, 5, 10], [0.5, 10, 100], ["low", "mid", "high"])],
        points=[Point("p", 5, 10, "here")], levels=[Level(10, "in"), Level(1000, "out")], where={5: "at five"},
    ).payload()  # fmt: skip
    (line,) = drawn["lines"]
    assert (line["at"], line["words"], line["wheres"]) == ([[0.5, 0.5], [1.0, 1.0]], ["mid", "high"], ["at five", "10"])
    assert drawn["points"][0]["at"] == [0.5, 0.5]
    assert [level["words"] for level in drawn["levels"]] == ["in"]


def test_bars_share_one_scale_and_the_longest_is_as_wide_as_the_place():
    rows = Bars("t", [Bar("a", [Part("p", 3, ""), Part("d", 1, "")], "4"), Bar("b", [Part("p", 1, "")], "1")]).payload()
    assert [[part["share"] for part in row["parts"]] for row in rows["rows"]] == [[0.75, 0.25], [0.25]]
    assert [entry["name"] for entry in rows["legend"]] == ["p", "d"]
