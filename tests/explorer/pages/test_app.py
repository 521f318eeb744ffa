"""The app as Streamlit runs it, on a tiny model: what is on screen, and what the component gets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from explorer.components import step_page
from explorer.hosting import runtime
from explorer.hosting.leases import Lease
from explorer.live.frame import unpack
from tests.explorer.page_client import hydrated

APP = str(Path(__file__).resolve().parents[3] / "explorer" / "pages" / "main.py")
HOSTILE = 'a<b & "c" </script><img src=x onerror=alert(1)> $5 and $9 _x_ [y](z) `c` :red[no]'


pytestmark = pytest.mark.usefixtures("app_server")


class App:
    """The app in one browser tab."""

    def __init__(self, **params: str) -> None:
        self.test = AppTest.from_file(APP, default_timeout=60)
        self.test.query_params.update(params)
        self.test.run()
        self.cmds: list[dict[str, Any]] = [{"n": 1, "op": "hello"}]
        self.next, self.seen = 1, 0
        self.mount = f"mount{id(self)}"

    def component(self) -> Any:
        (found,) = [e.proto for e in self.test.get("bidi_component") if e.proto.component_name == step_page.NAME]
        return found

    def frame(self) -> dict[str, Any]:
        header: dict[str, Any] = hydrated(*unpack(self.component().bytes))
        return header

    def tell(self, said: Any) -> None:
        """Run with a state value from the browser, as its message would bring it: the callback runs first."""
        element_id, states_of = self.component().id, self.test._tree.get_widget_states

        def with_ours() -> Any:
            states = states_of()
            states.widgets.add(id=element_id, json_value=json.dumps({"wire": said}))
            return states

        self.test._tree.get_widget_states = with_ours  # type: ignore[method-assign]
        self.test.run()

    def say(self, op: str, **args: Any) -> dict[str, Any]:
        """A command, until it is acknowledged."""
        self.next += 1
        self.cmds.append({"n": self.next, "op": op, **args})
        for poll in range(200):
            have = {"epoch": -1, "steps": 0}
            self.tell({"mount": self.mount, "have": have, "seen": self.seen, "poll": poll, "cmds": self.cmds})
            if self.frame()["ack"] == self.next:
                self.cmds, self.seen = [], self.next
                return self.frame()
        raise AssertionError(f"never acknowledged: {self.frame()}")

    def words(self) -> str:
        return " ".join(
            str(element.value) for kind in ("text", "subheader", "caption") for element in self.test.get(kind)
        )


def test_the_page_is_one_component_with_a_frame():
    app = App()
    assert not app.test.exception
    frame = app.frame()
    assert (frame["mount"], frame["ack"], frame["session"]) == (None, 0, None)
    assert frame["model"]["num_layers"] == 2
    assert frame["examples"][0]["label"] == "The cat sat"
    assert set(frame["presets"]) == {"greedy", "unmodified (T = 1)", "chat defaults"}


def test_a_command_reaches_the_engine_and_its_frame_comes_back():
    app = App()
    app.say("prefill", prompt="abc", mode="raw")
    frame = app.say("step")
    assert not app.test.exception
    assert [(step["index"], step["kv_len"]) for step in frame["steps"]] == [(0, 3), (1, 4)]
    assert frame["steps"][1]["planes"]["attention"].shape == (2, 4, 4)
    assert [token["text"] for token in frame["tokens"][:3]] == ["a", "b", "c"]


def test_hostile_text_stays_in_the_frame_and_nowhere_else():
    app = App()
    frame = app.say("prefill", prompt=HOSTILE, mode="raw")
    assert frame["session"]["prompt"] == HOSTILE
    assert "".join(token["text"] for token in frame["tokens"][:-1]) == HOSTILE
    assert [kind for kind in ("markdown", "text", "code") if app.test.get(kind)] == []
    [styles] = app.test.get("html")
    assert styles.proto.body.startswith("<style>")
    assert "alert" not in styles.proto.body


def test_garbage_from_the_browser_breaks_nothing(caplog):
    app = App()
    for garbage in (5, "x", [], {"mount": 7}, {"mount": "m", "cmds": [{"n": "1"}]}):
        app.tell(garbage)
        assert not app.test.exception
    assert "cannot be read" in caplog.text
    app.say("prefill", prompt="abc", mode="raw")


def test_a_link_is_opened_by_the_greeting():
    app = App(prompt="abc", steps="2", temperature="0.5")
    assert app.frame()["session"] is None
    assert app.frame()["link"]["prompt"] == "abc"
    frame = app.say("hello")
    assert len(frame["steps"]) == 3
    assert frame["session"]["sampling"]["temperature"] == 0.5


def test_two_tabs_have_two_sessions():
    first, second = App(), App()
    a = first.say("prefill", prompt="abc", mode="raw")["session"]
    b = second.say("prefill", prompt="xyz", mode="raw")["session"]
    assert a["sid"] != b["sid"]
    assert first.say("step")["session"]["prompt"] == "abc"


def test_a_duplicated_tab_gets_a_copy():
    first, second = App(), App()
    first.say("prefill", prompt="abc", mode="raw")
    made = first.say("step")
    second.cmds.clear()
    copy = second.say("hello", sid=made["session"]["sid"], recipe=made["session"]["recipe"])
    assert copy["answers"][-1]["value"] == {"how": "rebuilt"}
    assert copy["session"]["recipe"] == made["session"]["recipe"]
    assert copy["session"]["sid"] != made["session"]["sid"]


def test_a_reloaded_tab_goes_on_with_its_session():
    before = App()
    session = before.say("prefill", prompt="abc", mode="raw")["session"]
    runtime.runtime().tabs.release(Lease(session["sid"], before.test.session_state["loupe_owner"]))  # as at a reload
    after = App()
    after.cmds.clear()
    frame = after.say("hello", sid=session["sid"])
    assert frame["answers"][-1]["value"] == {"how": "resumed"}
    assert frame["session"]["sid"] == session["sid"] == after.test.session_state["loupe_sid"]
    assert len(after.say("step")["steps"]) == 2


def test_no_two_frames_are_the_same_bytes():
    app = App()
    before = app.component().bytes
    app.test.run()
    assert app.component().bytes != before


def test_scripts_and_styles_are_an_element_of_their_own_and_come_with_no_frame():
    app = App()
    frame = app.component()
    assert len(frame.SerializeToString()) - len(frame.bytes) < 4_000
    (code,) = [e.proto for e in app.test.get("bidi_component") if e.proto.component_name != step_page.NAME]
    assert len(code.js_content) > 100_000
    before = code.SerializeToString()
    app.say("prefill", prompt="abc", mode="raw")
    (after,) = [e.proto for e in app.test.get("bidi_component") if e.proto.component_name != step_page.NAME]
    assert after.SerializeToString() == before  # Streamlit sends what did not change as a reference


def test_the_tab_keeps_only_names_in_streamlits_session():
    app = App()
    app.say("prefill", prompt="abc", mode="raw")
    state = app.test.session_state
    kept = {key: state[key] for key in ("loupe_owner", "loupe_sid")}
    assert set(state._state.filtered_state) - {step_page.KEY, step_page.CODE_KEY} == set(kept)
    assert all(isinstance(value, str) and len(value) > 16 for value in kept.values())


def test_a_tab_whose_session_was_forgotten_gets_a_new_one():
    app = App()
    before = app.say("prefill", prompt="abc", mode="raw")
    there = runtime.runtime()
    there.tabs.drop(app.test.session_state["loupe_sid"])
    app.test.run()
    assert not app.test.exception
    assert app.frame()["session"] is None
    assert [answer["error"]["kind"] for answer in app.frame()["answers"]] == ["Forgotten", "Forgotten"]
    recipe = before["session"]["recipe"]
    frame = app.say("hello", sid=before["session"]["sid"], recipe=recipe)
    assert frame["session"]["recipe"] == recipe
    assert len(app.say("step")["steps"]) == 2


def test_a_model_that_is_not_there_is_said_with_a_way_out(monkeypatch, tmp_path):
    missing = str(tmp_path / "no_$5_*such*_model")
    monkeypatch.setenv("LOUPE_MODEL", missing)
    app = App()
    assert not app.test.exception
    assert missing in app.words()
    assert "LOUPE_MODEL" in app.words()
    assert app.test.get("bidi_component") == []
    app.test.button(key="retry_load").click().run()
    assert missing in app.words()


def test_a_missing_package_is_a_page_and_no_traceback(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "engine.llm_engine", None)  # makes importing it fail
    app = App()
    assert not app.test.exception
    assert "pip install -r requirements.txt" in app.words()
    monkeypatch.undo()


# --- a class --------------------------------------------------------------------------------------------------


def test_a_full_class_is_a_page_with_the_place_in_line_and_lets_in_when_one_is_free(monkeypatch):
    monkeypatch.setenv("LOUPE_MODE", "hosted")
    monkeypatch.setenv("LOUPE_MAX_SESSIONS", "1")
    first = App()
    first.say("prefill", prompt="abc", mode="raw")
    second, third = App(), App()
    assert not second.test.exception
    assert second.test.get("subheader")[0].value == "The class is full"
    assert "You are next." in second.words()
    assert "You are number 2 in line." in third.words()
    runtime.runtime().tabs.drop(first.test.session_state["loupe_sid"])
    third.test.run()  # asks first, and it is not its turn
    assert "You are number 2 in line." in third.words()
    second.test.run()
    second.say("prefill", prompt="xyz", mode="raw")
    third.test.run()
    assert "You are next." in third.words()


def test_a_class_whose_model_is_missing_shows_no_path(monkeypatch, tmp_path):
    missing = str(tmp_path / "gone")
    monkeypatch.setenv("LOUPE_MODE", "hosted")
    monkeypatch.setenv("LOUPE_MODEL", missing)
    app = App()
    assert not app.test.exception
    assert missing not in app.words()
    assert "The class cannot begin yet" in app.words()
