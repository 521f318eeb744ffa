"""Commands and links that nobody's page would send: each is refused in words, and the run stays as it was."""

from __future__ import annotations

import random

import pytest

from explorer.links.link import Link
from explorer.links.read import MAX_CHARACTERS, parse
from explorer.live.commands import OPERATIONS
from tests.explorer.page_client import Page

ODD = (
    None,
    True,
    -1,
    0,
    1.5,
    10**400,
    float("inf"),
    float("nan"),
    1e308,
    "",
    "9" * 5000,
    "\ud83d",
    "\x00",
    [],
    {},
    [[[]]],
    {"a": None},
    {"temperature": 10**400},
    {"temperature": "1"},
    {"top_k": 1e308},
    {"max_new_tokens": 10**400},
    {"stop_strings": [5]},
    ["x"] * 600,
)
NAMES = (
    "prompt",
    "mode",
    "step",
    "token_id",
    "layer",
    "head",
    "branch",
    "seed",
    "sampling",
    "stop",
    "solo",
    "name",
    "text",
    "load",
    "on",
    "recipe",
    "sid",
    "id",
    "auto",
    "row",
    "index",
    "steps",
)
LONG = {"measure_machine", "model"}  # work of its own, with tests of its own


@pytest.mark.parametrize("op", sorted(set(OPERATIONS) - LONG))
def test_a_command_with_odd_arguments_is_answered_in_words(op: str, run: Page):
    rng = random.Random(op)
    for _ in range(20):
        args = {name: rng.choice(ODD) for name in rng.sample(NAMES, rng.randrange(1, 5))}
        answer = run.ask(op, **args)
        assert answer["ok"] or answer["error"]["kind"] != "InternalError", (args, answer)
        assert answer["ok"] or 0 < len(answer["error"]["message"]) < 1_000
    run.ok("reset")
    run.ok("prefill", prompt="abc", mode="raw")
    run.ok("step")


@pytest.mark.parametrize("value", [10**400, -(10**400), float("inf"), float("nan"), 10**301], ids=range(5))
def test_a_number_that_is_none_changes_no_setting(value, run: Page):
    before = run.header["session"]["sampling"], run.header["session"]["seed"]
    for args in ({"sampling": {"temperature": value}}, {"seed": value}, {"stop": {"max_new_tokens": value}}):
        answer = run.ask("settings", **args)
        assert not answer["ok"] and answer["error"]["kind"] != "InternalError"
    assert (run.header["session"]["sampling"], run.header["session"]["seed"]) == before


def test_random_links_are_read_or_refused_in_words():
    rng = random.Random(11)
    names = ["prompt", "mode", "model", "temperature", "top_k", "top_p", "min_p", "penalty", "seed", "steps", "step"]
    names += ["forced", "history", "layer", "head", "stop", "max_new", "end_ids", "max_kv", "sid", "x"]
    values = [
        "1e999",
        "inf",
        "nan",
        "9" * 5000,
        "9" * 400,
        "-1",
        "",
        "0:1,0,1,0,1,0",
        "0:1e999,0,1,0,1,0",
        "1:2,3",
        ":",
        ";",
    ]
    values += ["\x00", "%", "٣", "1_0", "a" * 3000, "0:9,9,9,9,9,9;" * 200, "[]", "true"]
    for _ in range(2_000):
        link = parse({name: [rng.choice(values)] for name in rng.sample(names, rng.randrange(1, 6))})
        assert all(len(note) < 500 for note in link.notes)


def test_a_link_that_is_too_long_is_not_read_and_said_so():
    (note,) = parse({"prompt": ["a" * MAX_CHARACTERS]}).notes
    assert "64,006 characters" in note
    assert parse({"prompt": ["a" * MAX_CHARACTERS]}) == Link(notes=(note,))
