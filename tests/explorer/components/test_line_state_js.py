"""What the page says while it has no run to step: a card where nothing is on screen, else one line in a bar."""

from __future__ import annotations

from typing import Any

import pytest

from tests.explorer.components.live_tab import LiveTab, run

pytestmark = pytest.mark.browser

MODEL = {"id": "tiny", "num_layers": 9, "num_heads": 4}
LOADING = {"model": "SmolLM2-135M", "text": "Reading the weights", "fraction": 0.25}
DRAWN = """(name) => {
    const view = new LineState(document.createElement('div'), store);
    view.draw();
    view.destroy();
    const { node } = view[name];
    if (node.hidden) return null;
    const seen = (selector) => [...node.querySelectorAll(selector)].filter((each) => !each.hidden);
    return {
        kind: node.dataset.kind,
        words: node.textContent.replace(/Try again$|Reload$/, '').trim(),
        role: node.querySelector('.line-said').getAttribute('role'),
        progress: seen('progress').map((bar) => (bar.hasAttribute('value') ? bar.value : null)),
        buttons: seen('button').map((button) => button.textContent),
    };
}"""


def drawn(tab: LiveTab, name: str) -> Any:
    return tab.page.evaluate(DRAWN, name)


def test_a_model_on_its_way_is_a_card_with_its_name_and_how_far_it_is(tab: LiveTab):
    tab.open()
    assert drawn(tab, "card")["kind"] == "connecting"
    tab.take(loading={**LOADING, "fraction": 0})
    assert drawn(tab, "card")["progress"] == [None], "how far it is, is not known yet"
    tab.take(loading=LOADING)
    card = drawn(tab, "card")
    assert (card["kind"], card["role"], card["progress"]) == ("loading", "status", [0.25])
    assert card["words"].startswith("Loading SmolLM2-135M Reading the weights")
    assert drawn(tab, "bar") is None
    tab.take(loading=None, model=MODEL, how="new", session=None)
    assert (drawn(tab, "card"), drawn(tab, "bar")) == (None, None)


def test_what_is_recorded_is_never_covered(tab: LiveTab):
    tab.begin(2, model=MODEL)
    tab.take(loading=LOADING)
    assert (drawn(tab, "card"), drawn(tab, "bar")["kind"]) == (None, "loading")
    tab.cut()
    bar = drawn(tab, "bar")
    assert (bar["kind"], bar["words"], bar["role"]) == ("lost", "Connection lost. Trying againin 1 second …", "status")
    assert drawn(tab, "card") is None
    tab.wait(500)
    assert drawn(tab, "bar")["words"].endswith("Trying again…")


@pytest.mark.parametrize(("place", "words"), [(1, "You are next."), (3, "You are number 3 in line.")])
def test_a_full_class_says_which_place_one_has(tab: LiveTab, place: int, words: str):
    tab.open()
    tab.take(place={"place": place, "waiting": 4})
    card = drawn(tab, "card")
    assert card["words"].startswith(f"The class is full {words}")
    assert "lets you in by itself" in card["words"]


def test_a_model_that_cannot_be_had_can_be_asked_for_again_over_a_new_connection(tab: LiveTab):
    tab.open()
    tab.take(failed="There is no such file.")
    card = drawn(tab, "card")
    assert (card["role"], card["buttons"]) == ("alert", ["Try again"])
    assert card["words"].endswith("There is no such file.")
    tab.now("() => new LineState(document.createElement('div'), store).again.click()")
    assert tab.connections == 2


def test_a_line_that_never_opened_names_its_address_and_what_may_block_it(tab: LiveTab):
    tab.now("() => store.line.open('an owner')")
    for pause in (500, 1_000):
        tab.cut()
        assert drawn(tab, "card")["kind"] == "connecting"
        tab.wait(pause)
    tab.cut()
    card = drawn(tab, "card")
    assert card["kind"] == "blocked"
    assert "a WebSocket at /live-line" in card["words"]
    assert "Upgrade" in card["words"]


def test_an_end_says_why_and_offers_a_reload_beside_what_is_recorded(tab: LiveTab):
    tab.begin(2, model=MODEL)
    tab.take(**run(3, since=2))
    tab.cut(4003, "This tab was opened again.")
    bar = drawn(tab, "bar")
    assert (bar["kind"], bar["role"], bar["buttons"]) == ("ended", "alert", ["Reload"])
    assert bar["words"].endswith("This tab was opened again.")
