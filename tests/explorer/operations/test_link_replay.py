"""Opening a deep link: the same tokens again, step by step, and a page whatever the link says."""

from __future__ import annotations

from urllib.parse import parse_qs

from explorer.hosting.runtime import Runtime
from explorer.links.link import digest
from tests.explorer.page_client import Page, engine_held


def opened(server: Runtime, query: str, owner: str | None = None) -> Page:
    return Page(server, params=parse_qs(query.removeprefix("?")), owner=owner)


def agreed(page: Page) -> Page:
    """The page, where somebody has let it load what its link wants."""
    if page.header["link"]["asks"]:
        page.ok("follow_link", load=True)
    return page


def test_a_link_loads_no_model_before_somebody_agrees(own_server, other_folder):
    asked: list[str] = []
    start = own_server.pool.start
    own_server.pool.start = lambda config, report: (
        asked.append((config.model, config.hub_token)),
        start(config, report),
    )[1]
    page = opened(own_server, f"?prompt=abc&steps=1&seed=5&model={other_folder}")
    assert page.header["how"] == "asks" and page.header["link"]["notes"] == []
    assert page.header["link"]["asks"] == str(other_folder)
    assert page.header["link"]["prompt"] == "abc"
    assert page.header["session"] is None
    page.leave()
    page = opened(own_server, "", owner=page.owner)  # a reload asks again and loads nothing
    assert page.header["how"] == "new"
    assert page.header["link"]["asks"] == str(other_folder)
    assert asked == []
    page.ok("follow_link", load=True)
    assert asked == [(str(other_folder), False)]  # whoever made the link does not use the token of who opens it
    assert len(page.steps) == 2 and page.header["model"]["id"] == str(other_folder)
    assert page.header["link"]["asks"] is None


def test_a_link_can_be_followed_on_the_model_that_runs(server):
    page = opened(server, r"?prompt=abc&steps=1&model=\\evil\share")
    assert page.header["link"]["asks"] == r"\\evil\share"
    running = page.header["model"]["id"]
    page.ok("follow_link", load=False)
    assert len(page.steps) == 2 and page.header["model"]["id"] == running
    answer = page.ask("follow_link", load=True)
    assert answer["error"]["kind"] == "BadCommand"


def test_a_link_replays_the_same_tokens(run, server):
    visitor = opened(server, run.header["session"]["url"])
    assert visitor.header["how"] == "link" and visitor.header["link"]["notes"] == []
    assert visitor.drawn == run.drawn
    assert [s["sampling"] for s in visitor.steps] == [s["sampling"] for s in run.steps]
    assert [s["draw"]["u"] for s in visitor.steps] == [s["draw"]["u"] for s in run.steps]
    assert [s["forced"] for s in visitor.steps] == [False, True, False, False]
    assert visitor.header["session"]["url"] == run.header["session"]["url"]
    run.ok("step")
    visitor.ok("step")
    assert visitor.drawn == run.drawn


def test_a_link_says_where_the_chat_template_writes_other_text_by_now(run, server):
    url = run.header["session"]["url"]
    fed = parse_qs(url.removeprefix("?"))["fed"][0]
    assert fed == digest(run.header["session"]["recipe"]["prompt_ids"])
    assert not any("other tokens" in note for note in opened(server, url).header["session"]["notes"])
    visitor = opened(server, url.replace(fed, digest([1, 2, 3])))  # as if the link were from another day
    assert any("other tokens than when this link was made" in note for note in visitor.header["session"]["notes"])
    assert len(visitor.steps) == 4


def test_a_link_of_a_folders_model_names_it_and_opens_without_its_tokens_where_another_runs(run, server, tiny_folder):
    url = run.header["session"]["url"]
    assert run.header["model"]["name"] == tiny_folder.name
    assert str(tiny_folder) not in url and f"model_name={tiny_folder.name}&" in url
    assert "file or folder on this machine" in run.header["session"]["link_note"]
    elsewhere = opened(server, url.replace(f"model_name={tiny_folder.name}", "model_name=Grown"))
    assert elsewhere.steps == []
    assert elsewhere.header["link"]["prompt"] == "ab🦊"
    assert elsewhere.header["settings"]["sampling"]["temperature"] == 0.4
    (note,) = elsewhere.header["link"]["notes"]
    assert "made with the model Grown" in note and f"{tiny_folder.name} runs here" in note


def test_a_link_says_its_busy_words_and_never_holds_the_page_up(run, server):
    link = run.header["session"]["url"].replace("steps=3", "steps=300")
    page = Page(server, params=parse_qs(link.removeprefix("?")), connect=False)
    page.connect()
    page.until(lambda: len(page.steps) > 3)
    with engine_held(run):
        page.until(lambda: page.header["busy"])
        assert page.header["busy"]["text"] == "replaying the link"
    page.until(lambda: "how" in page.header)
    assert len(page.steps) == 301


def test_a_stop_ends_a_replay_where_it_is(run, server):
    link = run.header["session"]["url"].replace("steps=3", "steps=900")
    page = Page(server, params=parse_qs(link.removeprefix("?")), connect=False)
    page.connect()
    page.until(lambda: len(page.steps) > 3)
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
        page = agreed(opened(server, query))
        assert "could not be replayed" in page.header["link"]["notes"][-1]
        page.ok("prefill", prompt="abc", mode="raw")


def test_a_model_loaded_for_a_link_that_fails_is_given_back(own_server, other_folder):
    page = agreed(opened(own_server, f"?prompt=abc&steps=1&forced=1:100000&model={other_folder}"))
    assert "could not be replayed" in page.header["link"]["notes"][-1]
    assert own_server.pool.close_unused() == [str(other_folder)]


def test_a_link_is_opened_once(server):
    page = opened(server, "?prompt=abc&steps=2")
    page.ok("reset")
    page.leave()
    again = opened(server, "?prompt=abc&steps=2", owner=page.owner)
    assert again.header["how"] == "new"
    assert again.header["session"] is None


def test_no_link_names_a_session(run):
    assert run.tab.sid not in run.header["session"]["url"]
