"""The browser's store without a server: frames say what has changed, what a tab keeps stays, records have names."""

from __future__ import annotations

import pytest

from tests.explorer.components.live_tab import LiveTab, done, run

pytestmark = pytest.mark.browser

NOTHING_AMISS = [None, None, None]
MODEL = {"id": "tiny", "num_layers": 9, "num_heads": 4}


def test_what_a_frame_does_not_name_is_as_it_was(tab: LiveTab):
    tab.begin(2, model=MODEL, undo=None, machine={"bytes_per_s": 9}, settings={"seed": 3})
    tab.take(busy={"text": "prefill", "done": 1, "total": 4})
    assert tab.now("[store.steps.length, store.machine.bytes_per_s, store.settings.seed, store.busy.done]") == [
        2,
        9,
        3,
        1,
    ]
    tab.take(busy=None, machine=None)
    assert tab.now("[store.busy, store.machine, store.session.sid]") == [None, None, "secret"]
    tab.take(session=None)
    assert tab.now("[store.session, store.steps.length, store.epoch]") == [None, 0, -1]


def test_the_first_frame_of_a_connection_says_all_that_stands_in_the_way(tab: LiveTab):
    ways = "[store.loading, store.failed, store.place]"
    tab.open()
    tab.take(loading={"model": "tiny", "text": "reading", "fraction": 0.5})
    assert tab.now("store.loading.fraction") == 0.5
    tab.take(loading=None, failed="No such file.")
    assert tab.now(ways) == [None, "No such file.", None]
    tab.now("store.line.retry()")
    tab.accept()
    tab.take(place={"place": 2, "waiting": 3})
    assert tab.now(ways) == [None, None, {"place": 2, "waiting": 3}]
    tab.take(place=None, how="new", session=None, model=MODEL)
    assert tab.now(ways) == NOTHING_AMISS
    assert tab.now("store.how") == "new"


def test_records_go_on_from_what_is_held_and_from_a_history_that_keeps_its_beginning(tab: LiveTab):
    tab.begin(3)
    tab.take(**run(5, since=3))
    assert tab.now("store.steps.map(({ index }) => index)") == [0, 1, 2, 3, 4]
    tab.now("() => { window.first = store.steps[0]; }")
    tab.take(**run(2, since=2, epoch=8, keeps=1))  # rewound
    assert tab.now("store.steps.length === 2 && store.steps[0] === first && store.sel.step === 1")
    tab.take(**run(3, epoch=9))  # another run
    assert tab.now("store.steps.length === 3 && store.steps[0] !== first")


def test_a_run_goes_on_over_a_restart_of_the_server_with_what_was_asked_for(tab: LiveTab):
    tab.begin(2)
    tab.send("step", times=3)
    tab.take(ack=1, answers=[done(1)], **run(3, since=2))
    tab.cut()
    tab.wait(500)
    opening = tab.accept()
    assert opening["session"] == {"sid": "secret", "recipe": {"version": 1}, "solo": False}
    assert [command["n"] for command in opening["commands"]] == [2, 3]
    assert tab.now("store.steps.length") == 3, "what is recorded can be looked at meanwhile"
    tab.take(how="rebuilt", ack=1, **run(3, epoch=50))
    tab.take(ack=3, answers=[done(2), done(3)], **run(5, since=3, epoch=50))
    assert tab.now("[store.steps.length, store.line.idle]") == [5, True]


def test_a_run_stays_on_screen_until_the_server_knows_whether_it_can_be_had_back(tab: LiveTab):
    tab.begin(2)
    tab.cut()
    tab.wait(500)
    tab.accept()
    tab.take(session=None, busy={"text": "hello", "done": 0, "total": 2})
    assert tab.now("[store.steps.length, store.how]") == [2, None]
    tab.take(how="new", notice={"kind": "NoPlace", "message": "No place."}, busy=None)
    assert tab.now("[store.steps.length, store.session, store.notice]") == [0, None, "No place."]


def test_a_reload_is_greeted_with_what_the_tab_kept_and_a_link_to_something_else_is_followed(tab: LiveTab):
    tab.now("store.show()")
    tab.begin(2)
    assert LiveTab(tab.page, keeps_storage=True).open()["session"]["sid"] == "secret"
    tab.now("history.replaceState(null, '', '/?prompt=The+dog')")
    link = LiveTab(tab.page, keeps_storage=True)
    opening = link.open()
    assert (opening["session"], opening["query"]) == (None, "prompt=The+dog")
    link.take(how="link", **run(1))
    link.cut()
    link.wait(500)
    assert link.accept()["session"]["sid"] == "secret", "the run that the link made is this tab's own now"


def test_after_a_reset_neither_the_tab_nor_its_link_brings_the_run_back(tab: LiveTab):
    tab.now("history.replaceState(null, '', '/?prompt=The+cat')")
    reset = LiveTab(tab.page)
    reset.begin(2)
    reset.send("reset")
    reset.take(ack=1, answers=[done(1, "reset")], session=None)
    reset.cut()
    reset.wait(500)
    opening = reset.accept()
    assert (opening["session"], opening["query"]) == (None, "")
    assert reset.now("location.search") == ""


def test_the_address_says_what_is_on_screen_only_while_the_step_page_is_shown(tab: LiveTab):
    tab.now("store.show()")
    tab.begin(2)
    linked = {"session": {"sid": "secret", "epoch": 1, "url": "prompt=The+cat&steps=1"}}
    tab.take(**linked)
    tab.wait(250)
    assert tab.now("location.search") == "?prompt=The+cat&steps=1"
    tab.now("history.pushState(null, '', '/library?ctx=4096')")
    tab.take(**linked)
    tab.wait(250)
    assert tab.now("location.pathname + location.search") == "/library?ctx=4096"
    tab.now("() => { history.pushState(null, '', '/'); store.show(); }")
    tab.wait(250)
    assert tab.now("location.search") == "?prompt=The+cat&steps=1"


def test_ten_steps_in_a_quarter_of_a_second_change_the_address_once(tab: LiveTab):
    tab.now("() => { store.show(); globalThis.changes = []; }")
    tab.now(
        "() => { const say = history.replaceState.bind(history); "
        "history.replaceState = (state, title, url) => { changes.push(url); say(state, title, url); }; }"
    )
    tab.begin(1)
    for number in range(1, 11):
        tab.take(session={"sid": "secret", "epoch": 1, "url": f"prompt=The+cat&steps={number}"})
        tab.wait(25)
    assert tab.now("changes") == ["/?prompt=The+cat&steps=10"]


def test_a_reload_before_the_address_says_the_newest_step_goes_on_with_the_run(tab: LiveTab):
    tab.now("store.show()")
    tab.begin(1)
    tab.take(session={"sid": "secret", "epoch": 1, "url": "prompt=The+cat&steps=1"})
    tab.wait(250)
    tab.take(session={"sid": "secret", "epoch": 1, "url": "prompt=The+cat&steps=2"})
    again = LiveTab(tab.page, keeps_storage=True)
    assert again.open()["session"]["sid"] == "secret"


def test_while_it_plays_each_frame_that_was_drawn_is_said_and_otherwise_none(tab: LiveTab):
    tab.begin(1)
    tab.now("store.drawn()")
    assert len(tab.said()) == 1
    tab.take(play={"on": True, "speed": 5, "error": None})
    tab.now("() => { store.drawn(); store.drawn(); }")
    tab.take(**run(2, since=1))
    tab.take(busy=None)
    tab.now("store.drawn()")
    assert tab.said()[1:] == [{"drawn": 2}, {"drawn": 4}]
    tab.cut()
    assert tab.now("store.play.on") is False, "it ends with the connection"


PLAY = """() => {
    window.errors = [];
    window.loop?.destroy();
    window.loop = new PlayLoop(store, () => {}, (words) => errors.push(words));
}"""


def test_play_shows_what_was_pressed_at_once_and_then_what_the_server_says(tab: LiveTab):
    tab.begin(1)
    tab.now(PLAY)
    tab.now("loop.start()")
    assert tab.said()[-1] == {"n": 1, "op": "play", "args": {"speed": 5}}
    assert tab.now("loop.playing")
    tab.take(ack=1, answers=[done(1, "play")], play={"on": True, "speed": 5, "error": None})
    assert tab.now("loop.playing")
    tab.now("loop.setSpeed(Infinity)")
    assert tab.said()[-1] == {"n": 2, "op": "play", "args": {"speed": None}, "seen": 1}
    tab.now("loop.pause()")
    assert not tab.now("loop.playing")
    tab.take(ack=3, answers=[done(2, "play"), done(3, "pause")], play={"on": False, "speed": None, "error": None})
    assert not tab.now("loop.playing")


def test_play_ends_with_the_servers_reason_and_when_an_older_step_is_looked_at(tab: LiveTab):
    tab.begin(3)
    tab.now(PLAY)
    tab.take(play={"on": True, "speed": 5, "error": None})
    tab.take(play={"on": False, "speed": None, "error": "The context is full."})
    assert (tab.now("loop.playing"), tab.now("errors")) == (False, ["The context is full."])
    tab.take(play={"on": True, "speed": 5, "error": None})
    tab.now("store.select({ layer: 0, head: 0 })")
    assert tab.now("loop.playing")
    tab.now("store.select({ step: 1 })")
    assert not tab.now("loop.playing")
    assert tab.said()[-1]["op"] == "pause"


def test_a_hidden_tab_pauses(tab: LiveTab):
    tab.begin(1, play={"on": True, "speed": 5, "error": None})
    tab.now(PLAY)
    tab.now(
        "() => { Object.defineProperty(document, 'hidden', { value: true, configurable: true });"
        " document.dispatchEvent(new Event('visibilitychange')); delete document.hidden; }"
    )
    assert tab.said()[-1]["op"] == "pause"


def test_a_record_that_came_again_has_its_name_and_another_row_of_logits_has_not(tab: LiveTab):
    tab.begin(3)
    before = tab.page.evaluate("() => { window.old = store.selected; return store.keyOf(old); }")
    tab.take(**run(3, epoch=2))
    assert tab.now("store.selected !== old && store.keyOf(store.selected)") == before
    assert tab.now("store.keyOf({ ...store.selected, log_sum_exp: 9 })") != before


@pytest.mark.parametrize(("kind", "kept"), [("BadCommand", False), ("InvalidSettings", False), ("NoPlace", True)])
def test_what_no_server_can_read_is_forgotten_so_that_a_reload_does_not_fail_again(tab, kind, kept):
    tab.begin(2)
    tab.take(how="new", notice={"kind": kind, "message": "No."}, session=None)
    assert tab.now("sessionStorage.getItem('loupe.session') !== null") is kept
