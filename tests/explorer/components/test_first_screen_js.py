"""What a new tab begins with: the first example, prefilled once by the page; a recorded step until it has come."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from explorer.recordings.shipped import first_step
from tests.explorer.components.live_tab import LiveTab, done, run

pytestmark = pytest.mark.browser

MODEL = {"id": "tiny", "name": "Tiny", "num_layers": 9, "num_heads": 4}
EXAMPLES = [{"label": "The dog", "prompt": "The dog ran", "mode": "raw"}]
NEW = {"how": "new", "session": None, "model": MODEL, "examples": EXAMPLES}
PREFILL = {"n": 1, "op": "prefill", "args": {"prompt": "The dog ran", "mode": "raw"}}
OPENED = """(recorded) => {
    globalThis.FIRST_STEP = recorded;
    globalThis.row = new PromptRow(document.createElement('div'), store);
    globalThis.first = new FirstScreen(store, row, () => false);
    const draw = (changes) => { row.draw(changes); first.draw(); };
    store.addEventListener('change', ({ detail }) => queueMicrotask(() => draw(detail))); // the page draws later, too
}"""
SHOWN = "[store.recording?.model ?? null, store.steps.length, store.tokens.map(({ id }) => id)]"
RECORDING = ["SmolLM2-135M-Instruct", 1, [504, 2644, 2643, 335]]  # The, cat, sat, on
NOTHING: list[Any] = [None, 0, []]


def opened(tab: LiveTab) -> LiveTab:
    """The page is built, and its line is open."""
    tab.page.evaluate(OPENED, base64.b64encode(first_step()).decode())
    tab.open()
    return tab


def commands(tab: LiveTab) -> list[Any]:
    """What was asked for on this connection, after its opening."""
    return [message for message in tab.said()[1:] if "op" in message]


def test_a_new_tab_shows_the_recorded_step_prefills_once_and_then_shows_its_own_run(tab: LiveTab):
    opened(tab).take(loading={"model": "tiny", "text": "", "fraction": 0.1})
    assert (tab.now(SHOWN), commands(tab)) == (RECORDING, [])
    tab.take(loading=None, **NEW)
    assert (tab.now(SHOWN), commands(tab)) == (RECORDING, [PREFILL]), "nothing is blank while it is prefilled"
    tab.take(busy=None)
    tab.take(**run(1))
    assert tab.now("[store.recording, store.steps.length, store.session.sid, store.model.id]") == [
        None,
        1,
        "secret",
        "tiny",
    ]
    tab.take(ack=1, answers=[done(1, "prefill")])
    assert commands(tab) == [PREFILL]


def test_a_page_without_a_run_stays_so_after_a_reset_and_over_a_new_connection(tab: LiveTab):
    opened(tab).take(**NEW)
    tab.take(ack=1, answers=[done(1, "prefill")], **run(1))
    tab.send("reset")
    tab.take(ack=2, answers=[done(2, "reset")], session=None)
    assert tab.now(SHOWN) == NOTHING
    tab.cut()
    tab.wait(500)
    assert tab.accept()["commands"] == []
    tab.take(**NEW)
    assert (tab.now(SHOWN), commands(tab)) == (NOTHING, [])


@pytest.mark.parametrize(
    "header",
    [
        {**NEW, "notice": {"kind": "NoPlace", "message": "The run could not be rebuilt."}},
        {**NEW, "how": "asks"},
        {**NEW, "how": "link"},
        {**NEW, "how": "resumed", **run(2)},
        {**NEW, "how": "copied", **run(2)},
        {**NEW, "how": "rebuilt", **run(2)},
    ],
    ids=["a run that could not be had back", "a link's question", "a link", "a reload", "a duplicate", "a restart"],
)
def test_where_a_run_was_or_is_the_page_begins_none(tab: LiveTab, header: dict[str, Any]):
    opened(tab).take(**header)
    assert commands(tab) == []
    assert tab.now("[store.recording, store.steps.length]") == [None, len(header.get("steps", []))]


def test_a_reload_waits_for_its_own_run_and_shows_the_recorded_step_only_where_the_model_is_not_there(tab: LiveTab):
    tab.begin(2)
    reloaded = LiveTab(tab.page, keeps_storage=True)
    opened(reloaded)
    assert reloaded.now(SHOWN) == NOTHING
    reloaded.take(loading={"model": "tiny", "text": "", "fraction": 0.1})
    assert reloaded.now(SHOWN) == RECORDING
    reloaded.take(loading=None, **{**NEW, "how": None})
    reloaded.take(how="rebuilt", **run(2))
    assert reloaded.now("[store.recording, store.steps.length]") == [None, 2]
    assert commands(reloaded) == []


def test_whoever_types_or_prefills_first_is_not_overtaken(tab: LiveTab):
    opened(tab)
    tab.now("() => { row.box.value = 'My own'; row.box.dispatchEvent(new Event('input')); }")
    tab.take(**NEW)
    assert (tab.now(SHOWN), commands(tab)) == (NOTHING, [])
    assert tab.now("row.text") == "My own"
    quick = opened(LiveTab(tab.page))
    quick.send("prefill", prompt="Mine", mode="raw")
    quick.take(**NEW)
    assert [command["args"]["prompt"] for command in commands(quick)] == ["Mine"]
    assert quick.now(SHOWN) == RECORDING, "until their run has come"


def test_a_prefill_that_fails_says_so_and_leaves_no_recorded_step_behind(tab: LiveTab):
    opened(tab).take(**NEW)
    error = {"kind": "NoPlace", "message": "All places are taken."}
    tab.take(ack=1, answers=[{"n": 1, "op": "prefill", "ok": False, "error": error}])
    assert tab.now(SHOWN) == NOTHING
    assert tab.now("row.error.textContent") == "All places are taken."


def test_a_recorded_step_can_be_looked_at_and_is_nobodys_run(tab: LiveTab):
    assert opened(tab).said()[0]["have"] is None
    tab.now("store.select({ layer: 3, head: 2 })")
    tab.wait(600)
    tab.send("step")
    tab.send("force", step=0, token_id=7)
    assert tab.settled() == ["Recorded", "Recorded"]
    assert commands(tab) == []
    assert tab.now("sessionStorage.length") == 0
    tab.take(**{**NEW, "model": {**MODEL, "name": "SmolLM2-135M-Instruct"}, **run(1)})
    assert tab.now("[store.sel.layer, store.sel.head]") == [3, 2], "what was chosen stays"


def test_another_model_begins_with_a_layer_of_its_own(tab: LiveTab):
    opened(tab).take(**NEW)
    tab.take(**run(1))
    assert tab.now("[store.model.name, store.sel.layer]") == ["Tiny", 3]  # a third of 9; of SmolLM2's 30 it was 10


@pytest.mark.parametrize(
    ("fed", "reused", "forwards", "words"),
    [
        (3, 0, 1, "the model read all 3 tokens of the prompt in one forward pass."),
        (1, 0, 1, "the model read the prompt’s one token in one forward pass."),
        (600, 0, 3, "the model read all 600 tokens of the prompt in 3 forward passes."),
        (
            600,
            512,
            1,
            "512 tokens were copied from an earlier prefill (a prefix hit), the other 88 read in one forward pass.",
        ),
        (
            3,
            3,
            0,
            "this prompt was prefilled before, so 3 columns were copied into the KV cache (a prefix hit), "
            "without a forward pass.",
        ),
    ],
)
def test_a_prefill_is_told_as_it_was(tab: LiveTab, fed: int, reused: int, forwards: int, words: str):
    step = {"input_ids": [7] * fed, "reused_tokens": reused, "forwards": forwards}
    assert tab.page.evaluate("(step) => prefillWords(step)", step) == words
