"""Who follows sees the leader's run and looks, changes nothing of it, and leaves with a copy of their own."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from explorer.following import leads
from explorer.following.code import ALPHABET, LENGTH, WRONG_AT_ONCE, new_code, typed_code
from explorer.following.follower import FOLLOWS
from explorer.hosting.runtime import Runtime
from tests.explorer.page_client import Page, on_loop, settle

ADDRESS = "https://class.example/"


def lead(page: Page) -> str:
    return str(page.ok("lead", address=ADDRESS)["code"])


class Follows(Page):
    """A page that follows. It has no tab on the server, so it waits for its first frame instead."""

    def __init__(self, server: Runtime, code: str, **more: Any) -> None:
        super().__init__(server, params={"follow": [code]}, connect=False, **more)
        self.look: dict[str, Any] = {}
        self.connect()
        self.until(lambda: "how" in self.header)


@pytest.fixture
def led(run: Page, server: Runtime) -> tuple[Page, Follows]:
    """A run of four steps that is led, and one who follows."""
    return run, Follows(server, lead(run))


def look(page: Page, **what: Any) -> None:
    page.send_look({"step": 3, "layer": 0, "head": 0, **what})


def test_a_follower_sees_every_token_and_number_of_the_leader_and_not_the_name_of_its_session(
    led: tuple[Page, Follows],
):
    run, follower = led
    assert follower.header["how"] == "following"
    assert follower.drawn == run.drawn
    assert np.array_equal(follower.steps[3]["planes"]["cand_logits"], run.steps[3]["planes"]["cand_logits"])
    assert np.array_equal(follower.steps[3]["planes"]["attention"], run.ok("attention", step=3)["attention"])
    run.ok("step")
    follower.until(lambda: len(follower.steps) == 5)
    assert follower.drawn == run.drawn
    run.ok("rewind", step=1)
    follower.until(lambda: len(follower.steps) == 2)
    assert follower.drawn == run.drawn
    assert run.tab.sid not in repr(follower.frames)
    assert run.owner not in repr(follower.frames)


def test_what_the_leader_looks_at_comes_along_with_the_attention_of_an_older_step(led: tuple[Page, Follows]):
    run, follower = led
    look(run, step=1, layer=1, presents="kv")
    follower.until(lambda: follower.header["look"]["step"] == 1)
    assert follower.header["look"] == {
        "step": 1,
        "layer": 1,
        "head": 0,
        "presents": "kv",
        "window": None,
        "lesson": None,
    }
    follower.until(lambda: "attention_of" in follower.header)
    shown = follower.header["attention_of"]
    assert shown["step"] == 1
    assert np.array_equal(shown["planes"]["attention"], run.ok("attention", step=1)["attention"])


@pytest.mark.parametrize(
    "op", ["step", "rewind", "force", "prefill", "reset", "lead_end", "play", "share", "save_run", "nonsense"]
)
def test_a_follower_cannot_drive_the_leaders_run(led: tuple[Page, Follows], op: str):
    run, follower = led
    before = run.drawn
    answer = follower.ask(op, step=0, token_id=5, prompt="mine", on=True, kind="page")
    assert (answer["ok"], answer["error"]["message"]) == (False, FOLLOWS)
    run.say()
    assert run.drawn == before
    assert run.header["leading"]["followers"] == 1


def test_a_hundred_followers_cost_the_engine_no_forward_pass_and_get_the_very_same_bytes(run: Page, server: Runtime):
    code = lead(run)
    settle(run.tab.workspace.engine)
    before = run.tab.workspace.engine.counters()
    followers = [Follows(server, code) for _ in range(20)]
    settle(run.tab.workspace.engine)
    after = run.tab.workspace.engine.counters()
    assert (after.batch_sizes, after.sessions) == (before.batch_sizes, before.sessions)  # counts of forward passes
    run.ok("step")
    frames = []
    for follower in followers:
        follower.until(lambda follower=follower: len(follower.steps) == 5)
        frames.append(repr(follower.frames[-1]))
    assert len(set(frames)) == 1
    run.until(lambda: run.say()["leading"]["followers"] == 20)


def test_the_leader_is_told_how_many_follow_and_how_many_are_behind_and_no_names(led: tuple[Page, Follows]):
    run, follower = led
    run.ok("step")
    follower.until(lambda: len(follower.steps) == 5)
    run.until(lambda: run.say()["leading"]["behind"] == 1)
    follower.say_drawn(follower.frames[-1]["frame"])
    run.until(lambda: run.say()["leading"]["behind"] == 0)
    assert set(run.header["leading"]) == {"code", "followers", "behind", "question"}
    follower.lose()
    run.until(lambda: run.say()["leading"]["followers"] == 0)


def test_whoever_leaves_goes_on_with_the_same_run_in_a_session_of_their_own(led: tuple[Page, Follows], server: Runtime):
    run, follower = led
    recipe = follower.header["session"]["recipe"]
    follower.lose()
    own = Page(server, owner=follower.owner, session={"sid": "left", "recipe": recipe})
    assert own.header["how"] == "rebuilt"
    assert own.drawn == run.drawn
    own.ok("step")
    run.ok("step")
    assert own.drawn == run.drawn, "the same recipe draws the same tokens"
    own.ok("step")
    assert len(run.steps) == 5


def test_a_lead_ends_when_its_leader_ends_it_or_has_been_gone_for_ten_minutes(
    led: tuple[Page, Follows], server: Runtime
):
    run, follower = led
    on_loop(server.leads.reap)
    assert len(on_loop(lambda: list(server.leads._by_code))) == 1
    run.ok("lead_end")
    follower.until(lambda: follower.header["follow"]["ended"])
    assert follower.header["follow"]["ended"] == leads.ENDED_BY_LEADER
    assert run.header["leading"] is None

    now = [0.0]
    server.leads._clock = lambda: now[0]
    late = Follows(server, lead(run))
    run.lose()
    now[0] = 599.0
    on_loop(server.leads.reap)
    assert late.say()["follow"]["ended"] is None
    now[0] = 601.0
    on_loop(server.leads.reap)
    late.until(lambda: late.header["follow"]["ended"])
    assert "ten minutes" in late.header["follow"]["ended"]


def test_a_reload_of_the_leader_goes_on_leading(led: tuple[Page, Follows], server: Runtime):
    run, follower = led
    code = run.say()["leading"]["code"]
    run.lose()
    run.connect()
    run.until(lambda: run.header["leading"])
    assert lead(run) == code
    run.ok("step")
    follower.until(lambda: len(follower.steps) == 5)


def test_a_code_that_is_none_is_said_and_wrong_ones_are_counted_by_address(server: Runtime):
    address = "203.0.113.9"
    page = Page(server, params={"follow": ["ABCDEFGH"]}, address=address)
    assert "Nobody leads under this code" in page.header["notice"]["message"]
    assert page.header["how"] == "new"
    for _ in range(WRONG_AT_ONCE):
        server.follow_attempts.failed(address)
    page = Page(server, params={"follow": ["ABCDEFGH"]}, address=address)
    assert "Too many wrong codes" in page.header["notice"]["message"]
    assert (
        "Nobody leads"
        in Page(server, params={"follow": ["ABCDEFGH"]}, address="203.0.113.10").header["notice"]["message"]
    )


def test_codes_are_eight_signs_that_are_not_read_as_each_other_and_may_be_typed_in_any_way():
    codes = {new_code() for _ in range(1000)}
    assert len(codes) == 1000
    assert all(re.fullmatch(f"[{ALPHABET}]{{{LENGTH}}}", code) for code in codes)
    assert not set("ILO01") & set(ALPHABET)
    assert len(ALPHABET) ** LENGTH == 852_891_037_441
    assert typed_code(" abcd-efgh ") == "ABCDEFGH"


def test_the_picture_is_of_the_link_and_nothing_but_an_address_is_put_into_it(page: Page):
    value = page.ok("lead", address=ADDRESS)
    assert value["link"] == f"{ADDRESS}?follow={value['code']}"
    assert len(value["qr"]) == len(value["qr"][0]) >= 21
    assert value["qr"][0].startswith("1111111")  # the corner mark
    for wrong in ("javascript:alert(1)", "https://x/?a=1", "nonsense", 3):
        assert not page.ask("lead", address=wrong)["ok"]


def test_answers_come_to_the_leader_alone_until_all_see_them_at_once(led: tuple[Page, Follows], server: Runtime):
    run, follower = led
    second = Follows(server, run.say()["leading"]["code"])
    run.ok("ask_class", text="What comes next?", kind="token", step=4)
    follower.until(lambda: follower.header["question"])
    second.until(lambda: second.header["question"])
    follower.ok("answer", answer=" mat")
    follower.ok("answer", answer=" sofa")  # thought again
    second.ok("answer", answer=" sofa")
    run.until(lambda: run.say()["leading"]["question"]["answered"] == 2)
    assert run.header["leading"]["question"]["answers"] == [[" sofa", 2]]
    assert all((frame.get("question") or {"answers": None})["answers"] is None for frame in follower.frames)
    run.ok("reveal")
    for one in (follower, second):
        one.until(lambda one=one: one.header["question"]["revealed"])
        assert one.header["question"]["answers"] == [[" sofa", 2]]
    assert "too late" in follower.ask("answer", answer=" rug")["error"]["message"]
    late = Follows(server, run.header["leading"]["code"])
    assert late.header["question"]["answers"] == [[" sofa", 2]]
    run.ok("ask_no_more")
    follower.until(lambda: follower.header["question"] is None)
    assert "Nothing is asked" in follower.ask("answer", answer=" mat")["error"]["message"]


def test_who_follows_again_has_one_answer_still(led: tuple[Page, Follows], server: Runtime):
    run, follower = led
    run.ok("ask_class", text="How many?", kind="number")
    follower.ok("answer", answer=3)
    follower.lose()
    again = Follows(server, run.say()["leading"]["code"], owner=follower.owner)
    again.ok("answer", answer=4)
    run.until(lambda: run.say()["leading"]["question"]["answers"] == [["4", 1]])
    assert not again.ask("answer", answer="many")["ok"]


def test_only_a_leader_asks_a_class(page: Page):
    assert "Start leading first" in page.ask("ask_class", text="?", kind="token")["error"]["message"]
    assert "Start leading first" in page.ask("reveal")["error"]["message"]
