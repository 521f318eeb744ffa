"""A session as JSON and back: nothing is lost, and nothing forged gets in."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.config import MAX_SEED, ChosenToken, Recipe, SamplingParams, StopRules
from engine.errors import LoupeError
from explorer.workspace.recipe_json import SavedSession, from_json, to_json

WARM = SamplingParams(temperature=0.7, top_k=50, top_p=0.9, min_p=0.05, repetition_penalty=1.1)


def saved(**changes: Any) -> SavedSession:
    chosen = (
        ChosenToken(335, False, SamplingParams(), 7),
        ChosenToken(253, True, SamplingParams(), 7),
        ChosenToken(6740, False, WARM, 41),
        ChosenToken(28, False, SamplingParams(), 41),
    )
    recipe = Recipe("tiny", (504, 2644, 2643), chosen, WARM, StopRules(False, 12, ("\n", "###"), 10**6), 41)
    roles = ("template", "prompt", "prompt")
    whole: dict[str, Any] = {
        "recipe": recipe,
        "prompt": "The 🦊",
        "mode": "chat",
        "prompt_roles": roles,
    }
    return SavedSession(**{**whole, **changes})


def through_the_browser(value: SavedSession) -> SavedSession:
    return from_json(json.loads(json.dumps(to_json(value))))


def test_a_session_comes_back_whole():
    assert through_the_browser(saved()) == saved()


def test_an_empty_session_comes_back():
    empty = SavedSession(Recipe("tiny"), None, "raw", ())
    assert through_the_browser(empty) == empty


def test_roles_follow_from_what_was_forced():
    assert saved().roles == ("template", "prompt", "prompt", "generated", "forced", "generated", "generated")


def test_a_seed_that_the_browser_cannot_hold_travels_as_digits():
    recipe = Recipe("tiny", seed=MAX_SEED)
    value = SavedSession(recipe, None, "raw", ())
    assert to_json(value)["seed"] == str(MAX_SEED)
    assert through_the_browser(value) == value


def test_settings_are_listed_where_they_change():
    assert [entry[0] for entry in to_json(saved())["settings"]] == [0, 2, 3]  # type: ignore[index, union-attr]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("version", 2),
        ("model_id", 5),
        ("prompt", 5),
        ("mode", "shout"),
        ("prompt_ids", [1, "2"]),
        ("prompt_ids", [-1]),
        ("prompt_ids", [True]),
        ("prompt_ids", 5),
        ("prompt_ids", [2**31]),
        ("roles", "t2"),
        ("roles", "x3"),
        ("roles", "p999999"),
        ("chosen_ids", [1.5]),
        ("chosen_ids", [1]),
        ("forced", [9]),
        ("settings", []),
        ("settings", [[1, {}]]),
        ("settings", [[0, {"heat": 1}]]),
        ("settings", [[0, {"temperature": -1}]]),
        ("settings", [[0, {}], [0, {}]]),
        ("sampling", {"temperature": "hot"}),
        ("sampling", {"temperature": float("nan")}),
        ("stop", {"max_new_tokens": 0}),
        ("stop", {"use_end_ids": 1}),
        ("stop", {"stop_strings": "abc"}),
        ("seed", -1),
        ("seed", 2**63),
        ("seed", "x"),
        ("seeds", [[0]]),
        ("seeds", 3),
    ],
)
def test_a_forged_value_is_refused_in_words(field, value):
    forged = {**to_json(saved()), field: value}
    with pytest.raises(LoupeError):
        from_json(forged)


@pytest.mark.parametrize("value", [None, 5, "recipe", [], {}])
def test_what_is_no_recipe_is_refused(value):
    with pytest.raises(LoupeError):
        from_json(value)
