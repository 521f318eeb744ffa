"""`python -m explorer.lessons check FILE...` says what is wrong in lessons, line by line; `list` names all of them."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from explorer.lessons.reading import BadLesson, read_file
from explorer.lessons.shelf import SHELF


def main(arguments: list[str] | None = None) -> int:
    """0: all is well."""
    parser = argparse.ArgumentParser(prog="python -m explorer.lessons", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("check", help="say what is wrong").add_argument("files", nargs="+", type=Path, metavar="FILE")
    commands.add_parser("list", help="name the lessons")
    asked = parser.parse_args(arguments)
    if asked.command == "list":
        return _list()
    return max(_check(file) for file in asked.files)


def _check(file: Path) -> int:
    try:
        lesson = read_file(file)
    except BadLesson as bad:
        for fault in bad.faults:
            print(f"{file}:{fault.line}: {fault.words}")
        return 1
    print(f"{file}: OK, {len(lesson.scenes)} scenes")
    return 0


def _list() -> int:
    for shelved in SHELF.all():
        lesson = shelved.lesson
        said = (
            f"{lesson.title}, {lesson.minutes} min, {len(lesson.scenes)} scenes"
            if lesson
            else f"{len(shelved.faults)} faults"
        )
        print(f"{shelved.id}: {said} ({shelved.file})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
