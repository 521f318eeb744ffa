"""A shared server's settings: read and checked, and kept to by every way into the engine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.errors import InvalidSettings
from explorer import moving
from explorer.engine_pool import EnginePool
from explorer.hosting import IN_A_CLASS, Hosting, from_environment
from explorer.leases import Registry
from explorer.runtime import Runtime
from tests.explorer.page_client import Page, prefilled

CLASS = Hosting(
    mode="hosted", max_prompt_characters=50, max_prompt_tokens=40, max_new_tokens=4, max_branches=2, play_rate=100.0
)


@pytest.fixture
def classroom(pool: EnginePool) -> Runtime:
    return Runtime(pool, Registry(), CLASS)


@pytest.fixture
def student(classroom: Runtime) -> Page:
    return Page(classroom)


# --- reading --------------------------------------------------------------------------------------------------


def test_alone_nothing_is_limited():
    alone = from_environment({})
    assert alone == Hosting()
    assert not alone.is_hosted
    assert not any(getattr(alone, name) for name in IN_A_CLASS)


def test_hosted_mode_brings_its_limits_and_the_environment_changes_one():
    hosted = from_environment({"LOUPE_MODE": "hosted", "LOUPE_MAX_SESSIONS": "30"})
    assert hosted == Hosting(mode="hosted", **{**IN_A_CLASS, "max_sessions": 30})


def test_the_environment_wins_over_the_file(tmp_path):
    file = tmp_path / "class.toml"
    file.write_text('mode = "hosted"\nmax_sessions = 40\nplay_rate = 3\nmodel = "m"\n')
    hosted = from_environment({"LOUPE_CONFIG": str(file), "LOUPE_MAX_SESSIONS": "7"})
    assert (hosted.mode, hosted.max_sessions, hosted.play_rate, hosted.model) == ("hosted", 7, 3.0, "m")
    assert hosted.max_new_tokens == IN_A_CLASS["max_new_tokens"]


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"LOUPE_MODE": "host"}, "mode must be own or hosted, got 'host'."),
        ({"LOUPE_MAX_SESSIONS": "many"}, "max_sessions must be a whole number, got 'many'."),
        ({"LOUPE_MAX_SESSIONS": "-1"}, "max_sessions must be a whole number from 0"),
        ({"LOUPE_PLAY_RATE": "nan"}, "play_rate must be a number of 0 or more"),
        ({"LOUPE_METRICS_PORT": "70000"}, "metrics_port must be a whole number from 0 to 65,535"),
        ({"LOUPE_HOST_KEY": "short"}, "host_key must have 12 characters or more"),
        ({"LOUPE_CONFIG": "/nowhere/class.toml"}, "LOUPE_CONFIG names /nowhere/class.toml, which cannot be read"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_in_words(environment, words):
    with pytest.raises(InvalidSettings) as caught:
        from_environment(environment)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("max_seats = 3", "'max_seats', which is not known"),
        ("max_sessions = true", "got True"),
        ("max_sessions = 2.5", "got 2.5"),
        ("max_sessions =", "is not TOML"),
    ],
)
def test_a_file_that_cannot_be_is_refused_in_words(tmp_path, text, words):
    file = tmp_path / "class.toml"
    file.write_text(text)
    with pytest.raises(InvalidSettings) as caught:
        from_environment({"LOUPE_CONFIG": str(file)})
    assert words in str(caught.value)


def test_the_hosts_key_is_in_no_log():
    assert "a-long-secret" not in repr(Hosting(host_key="a-long-secret"))


# --- kept to --------------------------------------------------------------------------------------------------


def test_a_student_cannot_load_a_model(student, other_folder):
    prefilled(student)
    answer = student.ask("model", id=str(other_folder))
    assert answer["error"]["kind"] == "NotHere"
    assert str(other_folder) not in answer["error"]["message"]
    student.ok("step")


def test_a_links_model_is_refused_with_a_note_and_the_page_opens(classroom, other_folder):
    page = Page(classroom, params={"prompt": ["abc"], "steps": ["1"], "model": [str(other_folder)]})
    (note,) = page.ok("hello")["notes"]
    assert "everybody shares one model" in note
    assert page.header["session"] is None
    prefilled(page)


def test_a_saved_run_of_another_model_is_refused(student, classroom):
    prefilled(student)
    recipe = {**student.header["session"]["recipe"], "model_id": "/etc"}
    assert Page(classroom).ask("hello", sid="gone", recipe=recipe)["error"]["kind"] == "NotHere"


def test_no_path_of_the_server_reaches_a_student(student, classroom, pool, config):
    prefilled(student)
    student.ok("step")
    assert config.model not in repr(student.header)
    assert student.header["model"]["id"] == student.header["model"]["name"]
    recipe = student.header["session"]["recipe"]
    again = Page(Runtime(pool, Registry(), CLASS))
    assert again.ok("hello", sid="gone", recipe=recipe) == {"how": "rebuilt"}
    assert again.drawn == student.drawn


def test_on_ones_own_machine_the_folder_is_shown(page, config):
    prefilled(page)
    assert page.header["model"]["id"] == config.model
    assert page.header["limits"] == {"models": True, "prompt_characters": 0, "new_tokens": 0, "play_rate": 0}


def test_a_long_prompt_is_refused_before_it_costs_anything(student):
    error = student.ask("prefill", prompt="x" * 51, mode="raw")["error"]
    assert error["message"] == "The prompt has 51 characters; this class reads at most 50. Shorten it by 1."
    error = student.ask("prefill", prompt="x" * 41, mode="raw")["error"]
    assert error["message"] == "The prompt is 41 tokens; this class reads at most 40. Shorten it by 1."
    student.ok("prefill", prompt="x" * 40, mode="raw")


def test_new_tokens_end_at_the_classs_limit(student):
    prefilled(student)
    assert student.header["session"]["stop"]["max_new_tokens"] == 4
    assert student.ask("settings", stop={"max_new_tokens": 5})["error"]["kind"] == "NotHere"
    student.ok("settings", stop={"max_new_tokens": 4, "use_end_ids": False})
    for _ in range(3):
        student.ok("step")
    assert student.header["session"]["finish_reason"] == "max_new_tokens"
    assert not student.ask("step")["ok"]


def test_a_link_draws_no_more_than_the_limit(classroom):
    page = Page(classroom, params={"prompt": ["abc"], "steps": ["9"], "max_new": ["500"], "end_ids": ["0"]})
    page.ok("hello")
    assert len(page.steps) == 4
    assert page.header["session"]["stop"]["max_new_tokens"] == 4


def test_a_saved_run_longer_than_the_limit_is_refused(student, classroom):
    prefilled(student)
    recipe = student.header["session"]["recipe"]
    long = {**recipe, "chosen_ids": [5] * 5}
    assert "at most 4" in Page(classroom).ask("hello", sid="gone", recipe=long)["error"]["message"]
    assert not Page(classroom).ask("hello", sid="gone", recipe={**recipe, "prompt_ids": [5] * 41, "roles": "p41"})["ok"]


def test_a_tab_has_only_so_many_runs(student):
    prefilled(student)
    student.ok("fork", step=0)
    assert "There are 2 runs already" in student.ask("fork", step=0)["error"]["message"]


def test_steps_that_come_too_fast_wait_and_none_is_lost(pool, monkeypatch):
    page = prefilled(Page(Runtime(pool, Registry(), replace(CLASS, max_new_tokens=0, play_rate=50.0))))
    page.tab.workspace.pace._clock = lambda: 1000.0  # a moment in which all steps are asked for
    alarm, waits = moving.ALARM, []

    class Recorded:
        def after(self, seconds):
            waits.append(seconds)
            return alarm.after(seconds)

    monkeypatch.setattr(moving, "ALARM", Recorded())
    page.ok("settings", stop={"use_end_ids": False})
    for _ in range(10):
        page.ok("step")
    assert len(page.steps) == 11
    assert waits == pytest.approx([0.02, 0.04])


def test_the_page_is_told_what_is_granted(student):
    prefilled(student)
    assert student.header["limits"] == {
        "models": False, "prompt_characters": 50, "new_tokens": 4, "play_rate": 100.0
    }  # fmt: skip


def test_a_link_names_no_session(student):
    prefilled(student)
    query = student.header["session"]["url"]
    assert student.tab.sid not in query
