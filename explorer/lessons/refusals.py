"""Why a scene of a lesson cannot be had, in words."""

from __future__ import annotations

from engine.errors import SessionError
from explorer.lessons.lesson import Lesson
from explorer.lessons.shelf import NoLesson
from explorer.say import words_beside

say = words_beside(__file__)


def no_scene(lesson: Lesson, scene: int) -> NoLesson:
    """The lesson has fewer scenes."""
    return NoLesson(say("missing.scene", title=lesson.title, count=len(lesson.scenes), scene=scene))


def no_token(text: str, model: str) -> NoLesson:
    """The lesson forces a token that this model does not have."""
    return NoLesson(say("missing.token", text=text, model=model))


def ended(step: int, why: str) -> SessionError:
    """The run ended before the scene's own step."""
    return SessionError(say("missing.ended", step=step, why=why))
