"""A shared server's settings: read and checked, and kept to by every way into the engine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.errors import InvalidSettings
from explorer.engines.pool import EnginePool
from explorer.hosting.class_now import class_now
from explorer.hosting.leases import Lease, Registry
from explorer.hosting.limits import IN_A_CLASS, Hosting, from_environment
from explorer.hosting.runtime import Runtime
from explorer.operations import run_steps
from tests.explorer.page_client import Page, on_loop, prefilled, reopened

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
    (note,) = page.header["link"]["notes"]
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
    assert page.header["limits"] == {
        "models": True,
        "prompt_characters": 0,
        "new_tokens": 0,
        "play_rate": 0,
        "share": False,
    }


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
    waits: list[float] = []
    wait_s = page.tab.workspace.pace.wait_s
    monkeypatch.setattr(page.tab.workspace.pace, "wait_s", lambda: waits.append(wait_s()) or waits[-1])
    page.ok("settings", stop={"use_end_ids": False})
    for turn in range(10):
        page.ok("step", auto=turn % 2 == 0)
    assert len(page.steps) == 11
    assert waits == pytest.approx([0.0] * 8 + [0.02, 0.04])


def test_the_page_is_told_what_is_granted(student):
    prefilled(student)
    assert student.header["limits"] == {
        "models": False,
        "share": False,
        "prompt_characters": 50,
        "new_tokens": 4,
        "play_rate": 100.0,
    }


def test_a_link_names_no_session(student):
    prefilled(student)
    query = student.header["session"]["url"]
    assert student.tab.sid not in query


def test_the_memory_of_one_run_is_bounded_whatever_it_asks_for(pool):
    page = prefilled(Page(Runtime(pool, Registry(), replace(CLASS, session_kv_bytes=5_000))))
    assert page.header["session"]["stop"]["max_kv_bytes"] == 5_000
    page.ok("settings", stop={"max_kv_bytes": 9_000, "use_end_ids": False})
    assert page.header["session"]["stop"]["max_kv_bytes"] == 5_000
    page.ok("settings", stop={"max_kv_bytes": 4_000})
    assert page.header["session"]["stop"]["max_kv_bytes"] == 4_000
    assert "max_kv=4000" in page.header["session"]["url"]


def test_a_link_does_not_carry_a_limit_that_is_the_classs_alone(pool):
    page = prefilled(Page(Runtime(pool, Registry(), replace(CLASS, session_kv_bytes=5_000))))
    assert "max_kv" not in page.header["session"]["url"]


# --- what failed ----------------------------------------------------------------------------------------------


def failing(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    def forward(*_, **__):
        raise RuntimeError("mat1 and mat2 at /srv/loupe/secret.py")

    runner = page.tab.workspace.engine.stepper.runner
    monkeypatch.setattr(runner, "forward", forward)
    monkeypatch.setattr(runner, "replay", forward)


def test_a_student_never_reads_what_failed_inside(student, monkeypatch, caplog):
    prefilled(student)
    with monkeypatch.context() as patch:
        failing(student, patch)
        answers = [
            student.ask("step"),
            student.ask("prefill", prompt="nobody typed this before", mode="raw"),
            student.ask("prompt_rows"),
            student.ask("triangle", layer=0, head=0),
        ]
    monkeypatch.setattr(run_steps, "step_of", lambda *_: 1 / 0)
    answers.append(student.ask("rewind", step=0))
    for answer in answers:
        assert not answer["ok"]
        said = answer["error"]["kind"] + answer["error"]["message"]
        assert not any(inside in said for inside in ("secret", "mat1", "/srv", "Runtime", "Zero", "Traceback"))
        assert "session is as it was" in said
    assert "/srv/loupe/secret.py" in caplog.text


def test_on_ones_own_machine_the_message_names_what_failed(page, monkeypatch):
    prefilled(page)
    failing(page, monkeypatch)
    assert "RuntimeError: mat1 and mat2" in page.ask("step")["error"]["message"]


# --- sharing --------------------------------------------------------------------------------------------------


@pytest.fixture
def watched(pool: EnginePool) -> Runtime:
    """A class whose host has a page."""
    return Runtime(pool, Registry(), replace(CLASS, host_key="correct-horse-battery"))


def test_nothing_is_shared_until_a_student_says_so_and_it_is_taken_back_at_once(watched):
    page = prefilled(Page(watched), "my text")
    prefilled(Page(watched), "another's")
    assert page.header["shared"] is False
    assert class_now(watched).shared == ()
    page.ok("share", on=True)
    assert page.header["shared"] is True
    (seen,) = class_now(watched).shared
    assert (seen.prompt, seen.text, seen.steps) == ("my text", page.steps[-1]["text"], 1)
    page.ok("step")
    assert class_now(watched).shared[0].steps == 2
    page.ok("share", on=False)
    assert class_now(watched).shared == ()
    assert page.header["shared"] is False


def test_a_shared_text_carries_no_name_and_another_number_each_time(watched):
    page = prefilled(Page(watched), "my text")
    numbers = []
    for _ in range(2):
        page.ok("share", on=True)
        (seen,) = class_now(watched).shared
        numbers.append(seen.number)
        assert page.tab.sid not in repr(seen) and page.owner not in repr(seen)
        page.ok("share", on=False)
    assert numbers[0] != numbers[1]


def test_who_is_gone_shares_nothing_any_more(watched):
    page = prefilled(Page(watched), "my text")
    page.ok("share", on=True)
    watched.tabs.release(Lease(page.tab.sid, page.owner))
    assert class_now(watched).shared == (), "not even within the grace period"
    again = reopened(page)
    assert again.header["shared"] is True, "a reload goes on as it was, visibly"
    watched.tabs.release(Lease(again.tab.sid, again.owner))
    on_loop(page.tab.part)
    third = Page(watched)
    third.ok("hello", sid=page.tab.sid)
    assert third.header["shared"] is False


def test_a_copy_of_a_shared_tab_is_not_shared(watched):
    page = prefilled(Page(watched), "my text")
    page.ok("share", on=True)
    copy = Page(watched)
    copy.ok("hello", sid=page.tab.sid)
    assert copy.header["shared"] is False


def test_where_there_is_no_host_to_read_it_nothing_is_shared(student, page):
    for one in (student, page):
        prefilled(one)
        assert one.ask("share", on=True)["error"]["kind"] == "NotHere"
        assert one.header["shared"] is False
        one.ok("share", on=False)
