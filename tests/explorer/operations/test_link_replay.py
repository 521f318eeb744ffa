"""Opening a deep link: the same tokens again, step by step, and a page whatever the link says."""

from __future__ import annotations

import time
from urllib.parse import parse_qs

from explorer.hosting.runtime import Runtime
from tests.explorer.page_client import Page


def opened(server: Runtime, query: str) -> Page:
    page = Page(server, params=parse_qs(query.removeprefix("?")))
    page.hello = page.ok("hello")  # type: ignore[attr-defined]
    return page


def test_a_link_replays_the_same_tokens(run, server):
    visitor = opened(server, run.header["session"]["url"])
    assert visitor.hello == {"how": "link", "notes": []}
    assert visitor.drawn == run.drawn
    assert [s["sampling"] for s in visitor.steps] == [s["sampling"] for s in run.steps]
    assert [s["draw"]["u"] for s in visitor.steps] == [s["draw"]["u"] for s in run.steps]
    assert [s["forced"] for s in visitor.steps] == [False, True, False, False]
    assert visitor.header["session"]["url"] == run.header["session"]["url"]
    run.ok("step")
    visitor.ok("step")
    assert visitor.drawn == run.drawn


def test_a_link_says_its_busy_words_and_never_holds_the_page_up(run, server):
    link = run.header["session"]["url"].replace("steps=3", "steps=60")
    page = Page(server, params=parse_qs(link.removeprefix("?")))
    page.tab._patience_s = 0.0
    page.queue("hello")
    words = set()
    for _ in range(2000):
        busy = page.say()["busy"]
        words.add((busy or {"text": ""})["text"])
        if not page.open:
            break
        time.sleep(0.001)
    assert "replaying the link" in words
    assert len(page.steps) == 61


def test_a_stop_ends_a_replay_where_it_is(run, server):
    link = run.header["session"]["url"].replace("steps=3", "steps=900")
    page = Page(server, params=parse_qs(link.removeprefix("?")))
    page.tab._patience_s = 0.01
    page.queue("hello")
    page.say()
    while not page.steps:
        page.say()
    page.ok("stop")
    assert 1 <= len(page.steps) < 900
    assert page.header["session"]["finish_reason"] is None


def test_a_link_past_a_stop_rule_that_was_changed_still_gets_there(page, server):
    page.ok("settings", stop={"max_new_tokens": 2, "use_end_ids": False})
    page.ok("prefill", prompt="abc", mode="raw")
    page.ok("step")
    page.ok("settings", stop={"max_new_tokens": 20})
    for _ in range(3):
        page.ok("step")
    page.ok("settings", stop={"max_new_tokens": 2})
    visitor = opened(server, page.header["session"]["url"])
    assert visitor.drawn == page.drawn
    assert visitor.header["session"]["finish_reason"] == page.header["session"]["finish_reason"] == "max_new_tokens"


def test_a_link_with_a_prompt_alone_fills_the_box_and_runs_nothing(server):
    page = opened(server, "?prompt=The+cat&temperature=0.5")
    assert page.header["session"] is None
    assert page.header["link"]["prompt"] == "The cat"
    assert page.header["settings"]["sampling"]["temperature"] == 0.5
    page.ok("prefill", prompt="abc", mode="raw")
    assert page.header["session"]["sampling"]["temperature"] == 0.5


def test_a_malformed_link_opens_with_defaults_and_says_what_was_wrong(server):
    page = opened(server, "?prompt=abc&steps=1&top_p=7")
    assert "top_p" in page.header["link"]["notes"][0]
    assert page.header["session"]["sampling"]["top_p"] == 1.0
    assert len(page.steps) == 2


def test_a_link_that_cannot_be_replayed_opens_with_the_reason(server):
    for query in ("?prompt=abc&steps=1&model=/no/such/model", "?prompt=abc&steps=1&forced=1:100000"):
        page = opened(server, query)
        assert "could not be replayed" in page.header["link"]["notes"][-1]
        page.ok("prefill", prompt="abc", mode="raw")


def test_a_model_loaded_for_a_link_that_fails_is_given_back(own_server, other_folder):
    page = opened(own_server, f"?prompt=abc&steps=1&forced=1:100000&model={other_folder}")
    assert "could not be replayed" in page.header["link"]["notes"][-1]
    assert own_server.pool.close_unused() == [str(other_folder)]


def test_a_link_is_opened_once(server):
    page = opened(server, "?prompt=abc&steps=2")
    page.ok("reset")
    assert page.ok("hello") == {"how": "new"}
    assert page.header["session"] is None


def test_no_link_names_a_session(run):
    assert run.tab.sid not in run.header["session"]["url"]
