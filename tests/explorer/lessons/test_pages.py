"""The lessons page, the teacher's sheets, and the page of documentation that must name everything there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from explorer.lessons import page as lessons_page
from explorer.lessons.actions import _READERS, SAMPLING_WORDS, WINDOWS
from explorer.lessons.fields import FIELDS, GUESS, LOOK, MACHINE, MODEL, RUN, STEP, is_number
from explorer.lessons.lesson import Lesson
from explorer.lessons.places import PLACES
from explorer.lessons.reading import read_lesson
from explorer.lessons.sheet import scene_seconds, sheet_html
from explorer.lessons.shelf import SHELF, Shelf
from tests.explorer.lessons.lesson_file import GOOD, with_line

ROOT = Path(__file__).resolve().parents[3]
DOC = (ROOT / "docs" / "lessons.md").read_text(encoding="utf-8")


def test_the_documentation_names_every_act_setting_window_place_and_field_with_what_it_is():
    for name in [*_READERS, *SAMPLING_WORDS, *WINDOWS]:
        assert f"`{name}" in DOC, name
    rows = set(re.findall(r"^\| `([\w.]+)` \| (.+) \|$", DOC, re.MULTILINE))
    named = {f"{group}.{name}": said for group, fields in [("look", LOOK), ("model", MODEL), ("run", RUN)]
             for name, said in fields.items()}  # fmt: skip
    named |= {f"machine.{name}": said for name, said in MACHINE.items()}
    named |= {f"guess.{name}": said for name, said in GUESS.items()}
    assert {*STEP.items(), *PLACES.items(), *named.items()} <= rows


def test_a_value_is_a_number_in_questions_where_the_page_has_a_number_for_it():
    script = (ROOT / "assets/step_page/lessons/fields.js").read_text(encoding="utf-8")
    texts = set(re.findall(r"^  (\w+): .*?(?:\bwords\(|\bfed\b|\btextUpTo\b|\blikeliest\()", script, re.MULTILINE))
    for name in FIELDS:
        assert is_number(name) == (name.split(".")[1] not in {*texts, "bandwidth"}), name


def test_the_example_in_the_documentation_is_a_lesson_without_a_fault():
    example = re.search(r"```markdown\n(.+?)```", DOC, re.DOTALL)
    assert example is not None
    assert len(read_lesson(example[1], "one-more-token").scenes) == 3


@pytest.mark.parametrize("lesson", SHELF.playable(), ids=lambda lesson: lesson.id)
def test_the_scenes_of_a_sheet_take_the_lessons_minutes(lesson: Lesson):
    seconds = scene_seconds(lesson)
    assert sum(seconds) == pytest.approx(60 * lesson.minutes, abs=2.5 * len(seconds))


def test_a_sheet_has_every_scene_question_and_right_answer_and_the_notes():
    html = sheet_html(read_lesson(GOOD, "small"))
    for said in ("First", "Second", "Question: Which?", "Answer: <em>[the token that it sampled]</em>"):
        assert said in html
    assert "Take <strong>two</strong> minutes." in html and "script" not in html


def test_what_a_file_says_never_becomes_markup_on_a_sheet():
    written = with_line(
        "Take **two** minutes.", "<script>alert(1)</script> [a](javascript:alert(1)) [b](https://ok.org)"
    )
    written = written.replace("title: Small", "title: <b>Small</b>").replace("## First", "## <i>First</i>")
    html = sheet_html(read_lesson(written, "small"))
    assert "<script" not in html and "javascript:" not in re.sub(r">[^<]*<", "><", html)
    assert "&lt;b&gt;Small&lt;/b&gt;" in html and "&lt;i&gt;First&lt;/i&gt;" in html
    assert '<a href="https://ok.org">b</a>' in html


def test_the_page_shows_a_faulty_file_with_its_lines_and_the_others_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "good.md").write_text(GOOD)
    (tmp_path / "bad.md").write_text(with_line("- you: step", "- you: leap"))
    monkeypatch.setattr(lessons_page, "SHELF", Shelf(tmp_path))
    shown: list[str] = []
    monkeypatch.setattr(lessons_page.lesson_list, "mount", lambda rows, key: shown.extend(r["id"] for r in rows))
    page = AppTest.from_string("from explorer.lessons.page import page\npage()", default_timeout=30).run()
    assert not page.exception
    assert shown == ["tour", "good"]
    assert any("line 24: There is no act 'leap'" in text.value for text in page.text)
