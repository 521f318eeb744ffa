"""Reads a lesson's file: front matter, scenes parted by a line of dashes, and notes for the teacher at the end.

All that is wrong is said at once, each with its line. docs/lessons.md is the same for people.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from explorer.lessons.actions import Action
from explorer.lessons.front_matter import read_front_matter
from explorer.lessons.lesson import Fault, Lesson
from explorer.lessons.scenes import read_scenes
from explorer.lessons.states import state_faults

MOST_BYTES = 200_000
MOST_SCENES = 40
NOTES = "For the teacher"
TOUR = "tour"  # asks for the short one; no file can be called so
_FILE_NAME = re.compile(r"(?:[0-9]+-)?([a-z0-9]+(?:-[a-z0-9]+)*)\.md")


class BadLesson(Exception):
    """A file that is no lesson. `faults` say where and why."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("; ".join(f"line {fault.line}: {fault.words}" for fault in faults))
        self.faults = tuple(faults)


def lesson_id(file: Path) -> str | None:
    """The name by which a file's lesson is asked for: 1-the-cat-sat.md is the-cat-sat. None: no name of a lesson."""
    found = _FILE_NAME.fullmatch(file.name)
    return found[1] if found else None


def read_file(file: Path) -> Lesson:
    """Raises BadLesson."""
    name = lesson_id(file)
    if name is None:
        raise BadLesson(
            [Fault(1, f"{file.name} is no name for a lesson. Use small letters, digits and dashes: why.md.")]
        )
    if name == TOUR:
        raise BadLesson([Fault(1, f"A lesson cannot be called {TOUR}: that asks for the short one. Rename the file.")])
    try:
        data = file.read_bytes()
        if len(data) > MOST_BYTES:
            raise BadLesson([Fault(1, f"The file has {len(data):,} bytes; a lesson has at most {MOST_BYTES:,}.")])
        return read_lesson(data.decode("utf-8-sig"), name)
    except UnicodeDecodeError:
        raise BadLesson([Fault(1, "The file is not UTF-8 text. Save it as UTF-8.")]) from None
    except OSError as error:
        raise BadLesson([Fault(1, f"The file cannot be read: {error.strerror}.")]) from None


def read_lesson(written: str, name: str) -> Lesson:
    """A lesson of this id. Raises BadLesson with everything that is wrong."""
    faults: list[Fault] = []

    def blame(line: int, words: str) -> None:
        faults.append(Fault(line, words))

    front, body = read_front_matter(written.replace("\r\n", "\n"), blame)
    body, notes = _without_notes(body)
    scenes = read_scenes(body, blame)
    if not 1 <= len(scenes) <= MOST_SCENES:
        blame(1, f"A lesson has 1 to {MOST_SCENES} scenes; this one has {len(scenes)}. A scene begins with ##.")
    lesson = Lesson(
        id=name,
        title=front.text("title"),
        summary=front.text("summary"),
        minutes=front.number("minutes", 1, 300, blame),
        model=front.text("model"),
        prompt=front.text("prompt").replace("\\n", "\n"),
        mode=front.mode(blame),
        seed=front.number("seed", 0, 2**31, blame),
        settings=front.settings(blame),
        scenes=scenes,
        notes=notes,
        settings_line=front.line("settings"),
    )
    lesson = with_prompt(lesson)
    faults += state_faults(lesson)
    if faults:
        raise BadLesson(sorted(faults, key=lambda fault: fault.line))
    return lesson


def with_prompt(lesson: Lesson) -> Lesson:
    """With the lesson's own prompt in every prefill that names none."""

    def named(action: Action) -> Action:
        is_bare = action.act == "prefill" and action.prompt is None
        return replace(action, prompt=lesson.prompt, mode=lesson.mode) if is_bare else action

    scenes = (
        replace(scene, do=tuple(map(named, scene.do)), you=named(scene.you) if scene.you else None)
        for scene in lesson.scenes
    )
    return replace(lesson, scenes=tuple(scenes))


def _without_notes(body: str) -> tuple[str, str]:
    """The scenes, and the part for the teacher."""
    found = re.search(rf"^---[ \t]*\n\s*^# {NOTES}[ \t]*$", body, re.MULTILINE)
    return (body, "") if found is None else (body[: found.start()], body[found.end() :].strip())
