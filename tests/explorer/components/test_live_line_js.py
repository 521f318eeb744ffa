"""The page's end of the live line: each command exactly once, whatever happens to the connection."""

from __future__ import annotations

import pytest

from tests.explorer.components.live_tab import OWNER, LiveTab, done, run

pytestmark = pytest.mark.browser

PAUSES_MS = [500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000]


def numbers(commands: list[dict[str, object]]) -> list[object]:
    return [command["n"] for command in commands]


def test_the_line_is_beside_streamlits_own_scripts_whatever_stands_before_them(tab: LiveTab):
    tab.open()
    assert tab.now("sockets[0].url") == "ws://loupe.test/live-line"
    tab.now(
        "() => { const script = document.createElement('script'); script.type = 'data';"
        " script.src = 'https://there.test/class/static/js/index.js'; document.head.append(script); }"
    )
    try:
        LiveTab(tab.page).open()
        assert tab.now("sockets[0].url") == "wss://there.test/class/live-line"
    finally:
        tab.now("document.querySelector('script[src]').remove()")


def test_an_opening_says_who_speaks_and_what_the_page_holds(tab: LiveTab):
    opening = tab.open()
    assert opening["loupe"] == 1
    assert opening["owner"] == OWNER
    assert 16 <= len(opening["mount"]) <= 64
    assert opening["session"] is None
    assert opening["have"] is None
    assert (opening["query"], opening["seen"], opening["commands"]) == ("", 0, [])


def test_commands_are_said_once_and_again_only_where_the_connection_was_lost(tab: LiveTab):
    tab.begin(1)
    tab.send("step", times=3)
    assert numbers(tab.said()[1:]) == [1, 2, 3]
    tab.take(ack=1, answers=[done(1, step=1)], **run(2, since=1))
    assert tab.settled() == [{"step": 1}]
    tab.cut()
    tab.send("step")
    tab.wait(500)
    opening = tab.accept()
    assert numbers(opening["commands"]) == [2, 3, 4]
    assert (opening["seen"], opening["have"]) == (1, {"epoch": 1, "steps": 2})
    tab.take(ack=4, answers=[done(1), done(2), done(3), done(4)], **run(5, since=2))
    assert len(tab.settled()) == 3, "an answer that is told again settles nothing again"
    assert tab.said()[1:] == []
    assert tab.now("store.steps.length") == 5


def test_a_command_that_was_asked_for_before_there_was_a_connection_goes_with_the_opening(tab: LiveTab):
    tab.send("prefill", prompt="The cat sat", mode="raw")
    opening = tab.open()
    assert opening["commands"] == [{"n": 1, "op": "prefill", "args": {"prompt": "The cat sat", "mode": "raw"}}]


def test_what_arrived_is_said_with_the_next_command_or_alone_after_half_a_second(tab: LiveTab):
    tab.begin(1)
    tab.send("step")
    tab.take(ack=1, answers=[done(1)], **run(2, since=1))
    tab.send("step")
    assert tab.said()[-1] == {"n": 2, "op": "step", "args": {}, "seen": 1}
    tab.take(ack=2, answers=[done(2)], **run(3, since=2))
    tab.wait(499)
    assert tab.said()[-1]["n"] == 2
    tab.wait(1)
    assert tab.said()[-1] == {"seen": 2}
    tab.wait(2_000)
    assert tab.said()[-1] == {"seen": 2}
    assert len(tab.said()) == 4


def test_pauses_between_attempts_double_up_to_ten_seconds_and_begin_anew_after_a_frame(tab: LiveTab):
    tab.begin(1)
    before = tab.connections
    for pause in PAUSES_MS:
        tab.cut()
        tab.wait(pause - 1)
        assert tab.connections == before
        tab.wait(1)
        before += 1
        assert tab.connections == before
    assert tab.state == "lost"
    tab.accept()
    assert tab.state == "lost", "only a frame shows that somebody is there"
    tab.take(how="resumed")
    assert tab.state == "open"
    tab.cut()
    tab.wait(500)
    assert tab.connections == before + 1


@pytest.mark.parametrize(("chance", "pause"), [(0.0, 375), (1.0, 625)])
def test_a_pause_is_up_to_a_quarter_shorter_or_longer_so_that_a_class_does_not_come_back_at_once(
    tab: LiveTab, chance: float, pause: int
):
    tab.begin(1)
    tab.now(f"Math.random = () => {chance}")
    tab.cut()
    tab.wait(pause - 1)
    assert tab.connections == 1
    tab.wait(1)
    assert tab.connections == 2


@pytest.mark.parametrize(
    "event", ["dispatchEvent(new Event('online'))", "document.dispatchEvent(new Event('visibilitychange'))"]
)
def test_with_the_network_or_the_person_back_nobody_waits_for_the_clock(tab: LiveTab, event: str):
    tab.begin(1)
    tab.cut()
    tab.now(f"() => {{ {event}; }}")
    assert tab.connections == 2


def test_after_twenty_quiet_seconds_the_page_asks_and_ten_later_it_connects_anew(tab: LiveTab):
    tab.begin(1)
    tab.wait(19_999)
    assert len(tab.said()) == 1
    tab.wait(1)
    assert tab.said()[-1] == {"beat": 1}
    tab.take(beat=1)
    tab.wait(20_000)
    assert tab.said()[-1] == {"beat": 2}
    tab.wait(10_000)
    assert tab.state == "lost"
    tab.wait(500)
    assert tab.connections == 2


def test_a_handshake_that_never_ends_is_given_up(tab: LiveTab):
    tab.now("() => store.line.open('an owner')")
    tab.wait(20_500)
    assert tab.connections == 2


def test_another_owner_takes_over_the_same_page_and_its_unanswered_commands(tab: LiveTab):
    mount = tab.open()["mount"]
    tab.take(how="new", **run(1))
    tab.send("step", times=2)
    tab.now(f"store.line.open('{OWNER}')")
    assert tab.connections == 1, "the same owner is there already"
    opening = tab.open("the secret of a new session")
    assert tab.now("sockets[0].readyState === 3 && sockets[0].onmessage === null && sockets[0].onclose === null")
    assert (opening["owner"], opening["mount"]) == ("the secret of a new session", mount)
    assert numbers(opening["commands"]) == [1, 2]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (1009, "more than the server takes in one message. Reload it. (a reason)"),
        (4000, "could not read what this page said. Reload it. (a reason)"),
        (4001, "a reason"),
        (4002, "no longer agree on what was asked for. Reload it. (a reason)"),
        (4003, "a reason"),
        (4004, "a reason"),
    ],
)
def test_a_final_end_is_told_in_words_and_nothing_is_tried_again(tab: LiveTab, code: int, words: str):
    tab.begin(1)
    tab.send("step", times=2)
    tab.cut(code, "a reason")
    tab.wait(60_000)
    tab.send("step")
    assert (tab.state, tab.connections) == ("ended", 1)
    assert tab.now("store.line.words").endswith(words)
    assert tab.settled() == ["Ended"] * 3


def test_an_end_without_a_reason_still_has_words(tab: LiveTab):
    tab.begin(1)
    tab.cut(4004)
    assert tab.now("store.line.words") == "Too many pages are open from your address. Close some, then reload this one."


def test_after_an_end_a_new_owner_begins_with_a_log_of_its_own(tab: LiveTab):
    mount = tab.open()["mount"]
    tab.take(how="new", ack=0, **run(1))
    tab.send("step")
    tab.cut(4004)
    opening = tab.open("the secret of a new session")
    assert opening["mount"] != mount
    assert opening["commands"] == []
    tab.send("step")
    assert tab.said()[-1]["n"] == 1


def test_of_a_hundred_commands_48_are_under_way_and_the_others_follow_as_answers_come(tab: LiveTab):
    tab.begin(1)
    tab.send("step", times=100)
    assert tab.said()[-1]["n"] == 48
    assert tab.now("store.line.pending('step')") == 100
    tab.take(ack=3)
    assert tab.said()[-1]["n"] == 51


def test_a_stop_goes_before_the_commands_that_were_not_said_yet_and_they_are_not_done(tab: LiveTab):
    tab.begin(1)
    tab.send("step", times=50)
    tab.send("stop", run=False)
    assert tab.said()[-1] == {"n": 49, "op": "stop", "args": {"run": False}}
    assert tab.settled() == ["Stopped"] * 2
    assert tab.now("store.line.pending('step')") == 48


def test_a_stop_without_a_connection_drops_nothing(tab: LiveTab):
    tab.begin(1)
    tab.cut(1006)
    tab.send("step", times=2)
    tab.send("stop", run=False)
    assert tab.now("store.line.pending('step')") == 2


def test_at_500_commands_the_page_says_that_they_are_enough(tab: LiveTab):
    tab.begin(1)
    tab.send("step", times=500)
    assert tab.now("store.send('step').catch((error) => error.message)") == "500 steps are waiting already."


def test_what_fits_nothing_that_is_held_is_asked_for_from_the_beginning(tab: LiveTab):
    tab.begin(2)
    tab.take(**run(9, since=5))
    tab.wait(500)
    assert tab.connections == 2
    assert tab.accept()["have"] is None
    tab.take(how="resumed", **run(9))
    assert tab.now("store.steps.length") == 9
