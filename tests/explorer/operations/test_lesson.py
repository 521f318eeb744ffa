"""Lessons over the live line: what there is, one whole, and the run brought to where a scene needs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer.lessons.shelf import Shelf
from explorer.operations import lesson as operation
from tests.explorer.page_client import Page

LESSON = """---
title: Small
summary: A small lesson.
minutes: 2
model: Tiny
prompt: abcd
---

## One

Words.

- do: prefill

---

## Two

Words.

- do: step 2
- you: force "x"

---

## Three

Words.

- do: set temperature 0
- you: step 2
"""


@pytest.fixture(autouse=True)
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "small.md").write_text(LESSON)
    monkeypatch.setattr(operation, "SHELF", Shelf(tmp_path))


def test_a_lesson_comes_with_a_state_for_every_scene(page: Page):
    assert [one["id"] for one in page.ok("lessons")["lessons"]] == ["small"]
    scenes = page.ok("lesson", id="small")["scenes"]
    assert [scene["end"]["steps"] for scene in scenes] == [0, 2, 4]
    assert scenes[1]["end"]["forced"] == [2]


def test_the_run_is_brought_to_a_scene_as_its_acts_would_have_brought_it(page: Page, server):
    page.ok("lesson_run", id="small", scene=3, at="end")
    by_hand = Page(server)
    by_hand.ok("prefill", prompt="abcd")
    by_hand.ok("step")
    by_hand.ok("step")
    by_hand.ok("force", step=2, token_id=page.steps[2]["draw"]["token_id"])
    by_hand.ok("settings", sampling={"temperature": 0})
    by_hand.ok("step")
    by_hand.ok("step")
    assert page.drawn == by_hand.drawn and len(page.steps) == 5
    assert page.header["pieces"][str(page.steps[2]["draw"]["token_id"])]["text"] == "x"
    assert [step["sampling"]["temperature"] for step in page.steps] == [1, 1, 1, 0, 0]


def test_a_run_that_is_on_the_way_goes_on_and_another_is_given_back_by_undo(page: Page):
    page.ok("prefill", prompt="abcd")
    page.ok("step")
    epoch = page.epoch
    page.ok("lesson_run", id="small", scene=2)
    assert len(page.steps) == 3 and page.epoch == epoch  # two steps of the same history
    page.ok("prefill", prompt="another")
    page.ok("lesson_run", id="small", scene=1)
    assert page.header["session"]["prompt"] == "abcd"
    page.ok("undo")
    assert page.header["session"]["prompt"] == "another"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"id": "none"}, "There is no lesson none"),
        ({"id": 7}, "id must be text"),
        ({"id": "small", "scene": 9}, "has scenes 1 to 3, not 9"),
        ({"id": "small", "scene": 0}, "scene must be from 1"),
        ({"id": "small", "scene": 10**30}, "scene must be from 1"),
        ({"id": "small", "scene": 1, "at": "middle"}, "at must be start or end, got 'middle'"),
        ({"id": "small", "scene": 1, "at": 3}, "at must be start or end, got 3"),
        ({"id": "small", "scene": "2"}, "scene must be a whole number"),
    ],
)
def test_what_cannot_be_asked_for_is_refused_and_the_run_stays(page: Page, args: dict[str, object], said: str):
    page.ok("prefill", prompt="stays")
    assert said in page.ask("lesson_run", **args)["error"]["message"]
    assert page.header["session"]["prompt"] == "stays"


def test_a_token_that_the_model_does_not_have_is_said_by_its_name(page: Page, tmp_path: Path):
    (tmp_path / "odd.md").write_text(LESSON.replace('force "x"', 'force "two words"'))
    assert (
        "This lesson puts the token “two words” into the run"
        in (page.ask("lesson_run", id="odd", scene=2, at="end")["error"]["message"])
    )
