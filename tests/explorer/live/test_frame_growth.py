"""A step's frame holds what is new: its size does not grow with the run, and the frames add up to a whole one."""

from __future__ import annotations

import json

import pytest

from explorer.live.frame import unpack
from explorer.live.spellings import Spellings
from tests.explorer.page_client import Page, prefilled


def frames_of(page: Page) -> list[bytes]:
    """Every frame that the page takes from now on."""
    take, seen = page.take, []

    def taken(frame: bytes):
        seen.append(frame)
        return take(frame)

    page.take = taken  # type: ignore[method-assign]
    return seen


def step_bytes(page: Page, prompt: str) -> int:
    """A step's largest frame, without the link: it has the prompt in it, up to a length."""
    prefilled(page, prompt)
    page.ok("step")
    seen = frames_of(page)
    page.ok("step")
    header, _ = unpack(max(seen, key=len))
    return max(map(len, seen)) - len(json.dumps(header["session"]["url"]))


def test_a_step_behind_900_tokens_takes_hardly_more_bytes_than_one_behind_9(server):
    short, long = step_bytes(Page(server), "123456789"), step_bytes(Page(server), "123456789" * 100)
    assert long - short < 1_000


def whole(page: Page) -> tuple[object, ...]:
    """What a browser that holds nothing is told."""
    page.lose()
    fresh = Page(page.server, owner=page.owner)
    fresh.lose()
    page.connect()
    page.say()
    return told(fresh)


def told(page: Page) -> tuple[object, ...]:
    session = page.header["session"]
    return session["prompt"], session["recipe"], page.tokens, len(page.steps)


def named(page: Page) -> set[str]:
    """Ids that the page's steps name in their stages."""
    return {str(token_id) for step in page.steps for stage in step["stages"] for token_id, _ in stage["top"]}


MOVES = [
    ("prefill", {"prompt": "ab🦊", "mode": "chat"}),
    *[("step", {})] * 4,
    ("force", {"step": 4, "token_id": 0xF0 - 90}),
    ("step", {}),
    ("settings", {"sampling": {"temperature": 0.5}, "seed": 9}),
    ("step", {}),
    ("fork", {"step": 3}),
    ("step", {}),
    ("switch", {"branch": 1}),
    ("rewind", {"step": 2}),
    ("step", {}),
    ("stop", {}),
    ("prefill", {"prompt": "another one", "mode": "raw"}),
    ("step", {}),
]


def test_put_together_the_frames_say_what_a_whole_frame_says_after_every_move(page):
    page.ok("settings", stop={"use_end_ids": False})
    for op, args in MOVES:
        page.ok(op, **args)
        assert named(page) <= set(page.header["pieces"]), f"{op}: a token that the page cannot spell"
        mine = told(page)
        assert mine == whole(page), op
        assert told(page) == mine, op


def test_a_token_is_spelled_once_and_again_where_its_step_was_cut(page):
    prefilled(page)
    for _ in range(3):
        page.ok("step")
    records = page.tab.workspace.active.records
    spellings = Spellings()
    everything = spellings.needed(records, 0)
    assert spellings.needed(records, 4) == set()
    new = spellings.needed(records, 3)
    assert new < everything
    assert spellings.needed(records[:3], 3) == set()
    assert spellings.needed(records, 3) == new


@pytest.mark.parametrize("held", [1, 2])
def test_a_recipe_without_its_beginning_is_not_one(page, held):
    from explorer.workspace.recipe_json import since, to_json

    prefilled(page)
    page.ok("step")
    given = to_json(page.tab.workspace.saved())
    part = since(given, held)
    assert (part["chosen_from"], part["chosen_ids"]) == (held, given["chosen_ids"][held:])
    assert "prompt_ids" not in part and since(given, 0) is given
