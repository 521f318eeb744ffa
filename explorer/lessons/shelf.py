"""All lessons there are: the project's own, and those of the folder that LOUPE_LESSONS names."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock

from engine.errors import LoupeError
from explorer.lessons.actions import Action
from explorer.lessons.lesson import Fault, Lesson
from explorer.lessons.reading import TOUR, BadLesson, lesson_id, read_file
from explorer.say import words_beside

HOME = Path(__file__).resolve().parents[2] / "lessons"
log = logging.getLogger(__name__)
say = words_beside(__file__)


class NoLesson(LoupeError):
    """There is no lesson of that name, or its file has faults."""


@dataclass(frozen=True, slots=True)
class Shelved:
    """A lesson's file, and what was read from it: a lesson, or its faults."""

    id: str
    file: Path
    is_own: bool  # the project's
    lesson: Lesson | None
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True)
class _Read:
    stamp: tuple[int, int]
    shelved: Shelved


class Shelf:
    """Lessons by name, in the order of their files' numbers, then names. A changed file is read again."""

    def __init__(self, home: Path = HOME, others: Path | None = None) -> None:
        self._folders = [(home, True), *([(others, False)] if others else [])]
        self._read: dict[Path, _Read] = {}
        self._lock = Lock()

    def all(self) -> tuple[Shelved, ...]:
        """What the folders hold now. Of two files with one name the first counts; the other says so."""
        found: dict[str, Shelved] = {}
        clashes: list[Shelved] = []
        for shelved in self._each():
            first = found.setdefault(shelved.id, shelved)
            if first is not shelved:
                words = f"Another lesson is called {shelved.id} already: {first.file.name}. Rename this file."
                clashes.append(replace(shelved, lesson=None, faults=(Fault(1, words),)))
        return (*found.values(), *clashes)

    def _each(self) -> Iterator[Shelved]:
        for folder, is_own in self._folders:
            try:
                files = sorted((file for file in folder.iterdir() if file.suffix == ".md"), key=_order)
            except OSError:
                continue  # a folder that is not there holds none
            for file in files:
                if file.name.upper() != "README.MD":
                    yield self._one(file, is_own)

    def _one(self, file: Path, is_own: bool) -> Shelved:
        try:
            stat = file.stat()
            stamp = (stat.st_mtime_ns, stat.st_size)
        except OSError:
            stamp = (0, 0)
        with self._lock:
            known = self._read.get(file)
            if known is None or known.stamp != stamp:
                known = self._read[file] = _Read(stamp, _shelved(file, is_own))
            return known.shelved

    def playable(self) -> tuple[Lesson, ...]:
        """Those without faults."""
        return tuple(shelved.lesson for shelved in self.all() if shelved.lesson)

    def lesson(self, name: str, *, tells_faults: bool = True) -> Lesson:
        """A lesson by its name; "tour" is the short one. Raises NoLesson."""
        if name == TOUR:
            return self.tour()
        shelved = next((one for one in self.all() if one.id == name), None)
        if shelved is None:
            known = ", ".join(one.id for one in self.all())
            raise NoLesson(say("missing.lesson", id=name[:60], known=known) if known else say("missing.none"))
        if shelved.lesson is None:
            faults = " ".join(say("missing.line", line=fault.line, words=fault.words) for fault in shelved.faults[:3])
            raise NoLesson(
                say("missing.faulty", id=name, faults=faults) if tells_faults else say("missing.hidden", id=name)
            )
        return shelved.lesson

    def tour(self) -> Lesson:
        """The scenes of the first lesson that are marked for it. Raises NoLesson where there are none."""
        for lesson in self.playable():
            scenes = tuple(scene for scene in lesson.scenes if scene.tour)
            if scenes:
                prefill = Action("prefill", prompt=lesson.prompt, mode=lesson.mode, afresh=True)
                scenes = (replace(scenes[0], do=(prefill, *scenes[0].do)), *scenes[1:])
                title, summary = say("tour.title"), say("tour.summary")
                return replace(lesson, id=TOUR, title=title, summary=summary, minutes=3, scenes=scenes, notes="")
        raise NoLesson(say("missing.none"))


def _order(file: Path) -> tuple[bool, int, str]:
    """2-b.md before 10-a.md, and both before what has no number."""
    number = re.match(r"[0-9]{1,9}(?=-)", file.name)
    return number is None, int(number[0]) if number else 0, file.name


def _shelved(file: Path, is_own: bool) -> Shelved:
    name = lesson_id(file) or file.stem
    try:
        return Shelved(name, file, is_own, read_file(file))
    except BadLesson as bad:
        return Shelved(name, file, is_own, None, bad.faults)
    except Exception as error:  # one teacher's file must not take the other lessons from everybody
        log.exception("the lesson %s cannot be read", file)
        words = f"Loupe failed to read this file: {type(error).__name__}. The server's log has more."
        return Shelved(name, file, is_own, None, (Fault(1, words),))


def _own_shelf() -> Shelf:
    others = os.environ.get("LOUPE_LESSONS", "").strip()
    return Shelf(others=Path(others).expanduser() if others else None)


SHELF = _own_shelf()
