"""Which lessons there are: the project's and a teacher's, read again when a file changes, and never a broken page."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from explorer.lessons import shelf as shelf_module
from explorer.lessons.shelf import SHELF, NoLesson, Shelf
from tests.explorer.lessons.lesson_file import GOOD, with_line


def test_the_project_has_eight_lessons_of_8_to_15_scenes_without_a_fault_each_with_notes_for_the_teacher():
    own = [one for one in SHELF.all() if one.is_own]
    assert len(own) == 8
    for shelved in own:
        assert shelved.lesson is not None, shelved.faults
        assert 8 <= len(shelved.lesson.scenes) <= 15
        assert shelved.lesson.notes.count("\n### ") >= 4


def test_the_tour_is_five_scenes_of_the_first_lesson_and_begins_with_its_prefill():
    tour, first = SHELF.lesson("tour"), SHELF.lesson("the-cat-sat")
    assert len(tour.scenes) == 5 and {scene.title for scene in tour.scenes} <= {scene.title for scene in first.scenes}
    assert tour.scenes[0].do[0].act == "prefill" and tour.scenes[0].do[0].prompt == "The cat sat"


def test_a_changed_file_is_read_again_and_a_faulty_one_says_its_line(tmp_path: Path):
    file = tmp_path / "2-small.md"
    file.write_text(GOOD)
    shelf = Shelf(tmp_path)
    assert shelf.lesson("small").title == "Small"
    file.write_text(with_line("- you: step", "- you: leap"))
    os.utime(file, ns=(1, 1))
    with pytest.raises(NoLesson, match=r"line 24: There is no act 'leap'"):
        shelf.lesson("small")
    with pytest.raises(NoLesson, match=r"its file has faults\. Whoever runs this server") as bad:
        shelf.lesson("small", tells_faults=False)
    assert "leap" not in str(bad.value)


def test_a_teachers_folder_stands_beside_and_takes_no_name_that_is_taken(tmp_path: Path):
    home, others = tmp_path / "home", tmp_path / "others"
    for folder, name in [(home, "small.md"), (others, "small.md"), (others, "mine.md")]:
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(GOOD)
    found = [(one.id, one.is_own, len(one.faults)) for one in Shelf(home, others).all()]
    assert found == [("small", True, 0), ("mine", False, 0), ("small", False, 1)]
    assert [one.id for one in Shelf(home, tmp_path / "nowhere").all()] == ["small"]


def test_an_unknown_name_is_answered_with_those_there_are(tmp_path: Path):
    (tmp_path / "small.md").write_text(GOOD)
    with pytest.raises(NoLesson, match=r"There is no lesson other\. There are: small\."):
        Shelf(tmp_path).lesson("other")


def test_lessons_stand_in_the_order_of_their_numbers_and_those_without_one_come_last(tmp_path: Path):
    for name in ("10-c.md", "2-b.md", "1-z.md", "a.md"):
        (tmp_path / name).write_text(GOOD)
    assert [one.id for one in Shelf(tmp_path).all()] == ["z", "b", "c", "a"]


def test_a_file_on_which_the_reader_itself_fails_takes_no_other_lesson_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    for name in ("1-good.md", "2-deep.md"):
        (tmp_path / name).write_text(GOOD)
    read = shelf_module.read_file

    def failing(file: Path):
        if file.name == "2-deep.md":
            raise RecursionError("too deep")
        return read(file)

    monkeypatch.setattr(shelf_module, "read_file", failing)
    good, bad = Shelf(tmp_path).all()
    assert good.lesson is not None and bad.lesson is None
    assert bad.faults[0].words == "Loupe failed to read this file: RecursionError. The server's log has more."
    assert "2-deep.md cannot be read" in caplog.text
