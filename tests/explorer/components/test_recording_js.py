"""The page's own reader of recordings takes and refuses what the server's does, and the store shows what it took."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from explorer.recordings.reading import SCHEMA, read_recording
from explorer.recordings.shipped import SHIPPED
from tests.explorer.components.js_page import js_page
from tests.explorer.components.live_tab import LiveTab, run
from tests.explorer.recordings.recorded import DAMAGED, GOOD, bomb, changed, set_at

pytestmark = pytest.mark.browser

READ = """async ([text, schema]) => {
    globalThis.RECORDING_SCHEMA = schema;
    try {
        const read = await readRecordingFile(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)));
        globalThis.read = read;
        return { steps: read.header.steps.length };
    } catch (error) {
        return { refused: error instanceof BadRecording, words: error.message };
    }
}"""
ARRAY = "(name) => Array.from(globalThis.read.hydrate(globalThis.read.header.steps[5].planes)[name].data)"
MODEL = {"id": "tiny", "name": "Tiny", "num_layers": 2, "num_heads": 4, "notes": []}


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    opened = js_page(browser, {"recording_file.js": "readRecordingFile, BadRecording"})
    yield opened
    opened.close()


def read(page: Page, data: bytes) -> Any:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    return page.evaluate(READ, [base64.b64encode(data).decode(), schema])


@pytest.mark.parametrize("what", DAMAGED)
def test_the_page_refuses_what_the_server_refuses(page: Page, what: str):
    data, word = DAMAGED[what]
    answer = read(page, data)
    assert answer["refused"], answer
    assert word in answer["words"]


def test_the_page_reads_every_recording_that_ships_and_lets_later_fields_be(page: Page):
    for one in SHIPPED:
        assert read(page, one.file.read_bytes()) == {"steps": one.steps}
    assert read(page, changed(set_at("steps", 0, "from_later", to=[1]))) == {"steps": 12}


def test_the_page_refuses_a_file_that_unpacks_to_more_than_any_run(page: Page):
    assert "512 MB" in read(page, bomb())["words"]


def test_both_readers_find_the_same_arrays(page: Page):
    read(page, GOOD)
    recording = read_recording(GOOD)
    for name in ("attention", "kv_norms", "cand_ids", "stage_probs"):
        js = page.evaluate(ARRAY, name)
        assert js == recording.array(5, name).astype(float).ravel().tolist(), name


def test_a_recording_that_is_open_hides_the_run_and_closing_it_hears_all_of_the_run_again(tab: LiveTab):
    tab.begin(2, model=MODEL)
    shown = "() => [store.isOpened, store.steps.length, store.model?.name, store.sel.step]"
    tab.page.evaluate(f"() => {{ globalThis.shown = {shown}; }}")
    tab.page.evaluate(OPEN, recorded())
    assert tab.now("shown()") == [True, 3, "Recorded", 0]
    tab.take(**run(3, since=2))  # the run goes on meanwhile, by a class's autoplay, say
    assert tab.now("shown()") == [True, 3, "Recorded", 0]
    tab.send("step")
    assert tab.now("settled") == ["Recorded"], "a recording holds no model"
    tab.page.evaluate("() => store.closeRecording()")
    opening = tab.accept()
    assert opening["have"] is None
    tab.take(how="resumed", model=MODEL, **run(3))
    assert tab.now("shown()") == [False, 3, "Tiny", 2]


def recorded() -> dict[str, Any]:
    """A recording as its reader hands it to the store, without arrays."""
    shown = run(3)
    session = {**shown["session"], "sid": "recorded", "prompt": "abc"}
    model = {**MODEL, "name": "Recorded"}
    return {"made": {"at": "2026-12-01"}, **shown, "model": model, "session": session, "pieces": {}}


OPEN = "(header) => store.openRecording({ header, hydrate: (value) => value })"
