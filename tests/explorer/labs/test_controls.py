"""Controls live in the URL: a link sets them, and a link that asks for the impossible is told so."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest


def controls_page() -> None:
    import streamlit as st

    from explorer.labs import controls

    got = {
        "n": controls.whole("Sessions", url="n", default=8, low=1, high=100),
        "share": controls.number("Share", url="share", default=0.9, low=0, high=1),
        "f": controls.slider("Fraction", url="f", default=0.5, low=0, high=1, step=0.05),
        "ctx": controls.ladder("Context", [16, 1024, 4096], url="ctx", default=1024),
        "model": controls.choice("Model", [10, 20], url="model", default=20, words=lambda n: f"model {n}"),
        "kv": controls.choice("Cache as", ["fp32", "bf16"], url="kv", default="bf16", style="segments"),
        "log": controls.switch("Log", url="log"),
        "x": controls.text("Words", url="x", default="abc", most=5),
    }
    st.json(got)


DEFAULTS = {"n": 8, "share": 0.9, "f": 0.5, "ctx": 1024, "model": 20, "kv": "bf16", "log": False, "x": "abc"}


def opened(**asked: str) -> AppTest:
    page = AppTest.from_function(controls_page)
    page.query_params.update(asked)
    page.run()
    assert not page.exception
    return page


def values(page: AppTest) -> dict[str, object]:
    import json

    got: dict[str, object] = json.loads(page.json[0].value)
    return got


def said(page: AppTest) -> list[str]:
    return [element.value for element in page.text]


def test_without_a_link_every_control_has_its_default_and_says_nothing():
    page = opened()
    assert values(page) == DEFAULTS
    assert said(page) == []


def test_a_link_sets_every_control():
    page = opened(n="9", share="0.25", f="0.75", ctx="4,096", model="model 10", kv="fp32", log="true", x="xyz")
    assert values(page) == {
        "n": 9,
        "share": 0.25,
        "f": 0.75,
        "ctx": 4096,
        "model": 10,
        "kv": "fp32",
        "log": True,
        "x": "xyz",
    }
    assert said(page) == []


@pytest.mark.parametrize(
    ("name", "asked", "rule"),
    [
        ("n", "101", "a whole number from 1 to 100, so 8"),
        ("n", "many", "a whole number from 1 to 100, so 8"),
        ("share", "nan", "a number from 0 to 1, so 0.9"),
        ("share", "1.01", "a number from 0 to 1, so 0.9"),
        ("f", "-1", "a number from 0 to 1, so 0.5"),
        ("ctx", "17", "one of 16, 1,024 … 4,096, so 1,024"),
        ("model", "model 30", "one of model 10, model 20, so model 20"),
        ("kv", "fp8", "one of fp32, bf16, so bf16"),
        ("log", "perhaps", "true or false, so false"),
    ],
)
def test_a_link_that_asks_for_the_impossible_gets_the_default_and_is_told_so(name: str, asked: str, rule: str):
    page = opened(**{name: asked})
    assert values(page) == DEFAULTS
    assert said(page) == [f"The link asks for {name} = {asked}. It must be {rule} is used."]


def test_a_fraction_where_a_whole_number_belongs_is_said_with_what_is_used_instead():
    page = opened(n="2.5")
    assert said(page) == [
        f"The link asks for n = 2.5. It must be a whole number from 1 to 100, so {values(page)['n']} is used."
    ]


def test_a_text_that_is_too_long_is_not_taken():
    page = opened(x="abcdefgh")
    assert values(page)["x"] in ("abc", "abcde")
    assert "at most 5 characters" in said(page)[0]


def test_a_control_that_is_moved_no_longer_speaks_of_the_link():
    page = opened(n="101")
    page.number_input[0].set_value(12).run()
    assert values(page)["n"] == 12
    assert said(page) == []


def test_of_several_numbers_that_are_none_each_is_said() -> None:
    def two() -> None:
        from explorer.labs import controls

        controls.whole("First", url="a", default=1, low=1, high=9)
        controls.whole("Second", url="b", default=2, low=1, high=9)

    page = AppTest.from_function(two)
    page.query_params.update(a="1e999", b="inf")
    page.run()
    assert not page.exception
    assert said(page) == [
        "The link asks for a = 1e999. It must be a whole number from 1 to 9, so 1 is used.",
        "The link asks for b = inf. It must be a whole number from 1 to 9, so 2 is used.",
    ]


ODD = (
    "1e999",
    "-1e999",
    "inf",
    "nan",
    "9" * 5000,
    "9" * 400,
    "1e400",
    "1_0",
    "٣",
    "0x10",
    "\x00",
    "a" * 5000,
    "[]",
    "{}",
    "null",
    "1,2",
    "1e-999",
    "-0",
    "5.7",
    "𝟗",
    "%",
    "<b>",
    "",
)


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: repr(odd[:12]))
def test_whatever_a_link_asks_for_the_page_opens_and_says_what_it_cannot_do(odd):
    page = opened(**dict.fromkeys(DEFAULTS, odd))
    assert values(page).keys() == DEFAULTS.keys()
    told = [line for line in said(page) if line.startswith("The link asks for")]
    assert all(len(line) < 200 for line in told)
    if odd in ("1e999", "inf", "9" * 5000, "9" * 400):
        assert {**values(page), "x": "abc"} == DEFAULTS
        assert len(told) >= len(DEFAULTS) - 1
