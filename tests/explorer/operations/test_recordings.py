"""A run saved from the page is the run, and a recorded run goes on where it ended, if its tokens are this model's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from explorer.engines.pool import EnginePool
from explorer.hosting.leases import Registry
from explorer.hosting.limits import Hosting
from explorer.hosting.runtime import Runtime
from explorer.operations import recordings
from explorer.recordings.reading import Recording, read_recording
from tests.explorer.page_client import Page


def saved(page: Page) -> Recording:
    return read_recording(page.ok("save_run", kind="recording")["file"].tobytes())


def spelled(header: Any) -> dict[str, str]:
    return {str(token["id"]): token["hex"] for token in header["tokens"]}


def go_live(page: Page, header: Any, **changed: Any) -> dict[str, Any]:
    asked = {"recipe": header["session"]["recipe"], "model": header["model"], "spelled": spelled(header)}
    return page.ask("go_live", **{**asked, **changed})


def test_what_is_saved_is_what_is_on_screen(run: Page):
    recording = saved(run)
    header, session = recording.header, run.header["session"]
    assert header["session"]["recipe"] == session["recipe"]
    assert header["tokens"] == run.tokens
    for step, kept in zip(run.steps, header["steps"], strict=True):
        assert {**kept, "planes": None} == {**step, "planes": None}
        for name in ("kv_norms", "cand_logits", "stage_probs"):
            assert np.array_equal(recording.array(kept["index"], name), step["planes"][name])
    pages = {index: run.ok("attention", step=index)["attention"] for index in range(len(run.steps))}
    assert all(np.array_equal(recording.array(index, "attention"), rows) for index, rows in pages.items())


def test_saving_changes_nothing_and_names_the_file_after_the_prompt(page: Page):
    page.ok("prefill", prompt="The cat: <b>sat</b>", mode="raw")
    before = page.header["session"]
    assert page.ok("save_run", kind="recording")["name"] == "loupe-the-cat-b-sat-b-1-steps.loupe"
    html = page.ok("save_run", kind="page")
    assert html["name"].endswith("-1-steps.html")
    assert b"The cat: &lt;b&gt;sat" in html["file"].tobytes()
    assert page.header["session"] == before


def test_what_cannot_be_saved_is_said(page: Page):
    assert page.ask("save_run", kind="recording")["error"]["kind"] == "NotPrefilled"
    page.ok("prefill", prompt="abc", mode="raw")
    assert "recording or page" in page.ask("save_run", kind="zip")["error"]["message"]


def test_long_steps_of_a_run_over_the_budget_keep_the_largest_weight_of_each_stretch(
    page: Page, monkeypatch: pytest.MonkeyPatch
):
    page.ok("prefill", prompt="a" * 300, mode="raw")
    whole = saved(page).array(0, "attention")
    monkeypatch.setattr(recordings, "MOST_ATTENTION_BYTES", 1_000)
    pooled = saved(page)
    assert not pooled.has(0, "attention")
    maxima = pooled.array(0, "attention_thumb")
    assert maxima.shape == (2, 4, 64)
    assert maxima[1, 2, 63] == round(255 * float(whole[1, 2, 63 * 300 // 64 :].max()))


def test_a_recorded_run_goes_on_with_the_tokens_that_would_have_come(run: Page, server: Runtime):
    header = saved(run).header
    run.ok("step")
    wanted = run.drawn
    other = Page(server)
    other.ok("prefill", prompt="mine", mode="raw")
    assert go_live(other, header)["ok"]
    assert other.drawn == wanted[:-1]
    assert other.header["session"]["prompt"] == "ab🦊"
    other.ok("step")
    assert other.drawn == wanted
    other.ok("undo")
    assert other.header["session"]["prompt"] == "mine"


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"spelled": {"77": "00"}}, "vocabulary"),
        ({"spelled": {}}, "vocabulary"),
        ({"model": {"name": "Other"}}, "Other"),
        ({"model": 3}, "model"),
        ({"recipe": {"version": 1}}, "prompt_ids"),
        ({"recipe": "gone"}, "recipe"),
    ],
)
def test_a_recording_of_another_model_is_refused_and_the_run_stays(run: Page, changed: dict[str, Any], word: str):
    header, before = saved(run).header, run.drawn
    answer = go_live(run, header, **changed)
    assert not answer["ok"]
    assert word in answer["error"]["message"]
    assert run.drawn == before


def test_a_model_with_the_same_vocabulary_and_other_sizes_is_another_model(run: Page):
    header = saved(run).header
    answer = go_live(run, header, model={**header["model"], "num_layers": 3})
    assert "num_layers is 3 there and 2 here" in answer["error"]["message"]


def test_a_class_lets_nobody_go_on_with_a_run_longer_than_its_limits(pool: EnginePool, run: Page):
    header = saved(run).header
    hosted = Page(Runtime(pool, Registry(), Hosting(mode="hosted", max_new_tokens=3)))
    answer = go_live(hosted, header)
    assert "4 new tokens; this class draws at most 3" in answer["error"]["message"]
