"""A teacher's sheet: one lesson as a page to print, without scripts: times, questions with their answers, and notes."""

from __future__ import annotations

from html import escape
from pathlib import Path

from explorer.lessons.fields import FIELDS
from explorer.lessons.lesson import Ask, Lesson, Scene, Span, Text
from explorer.lessons.prose import count_words, is_allowed_link, markdown
from explorer.lessons.shelf import say

ACT_WORDS = 25  # what an act or a question takes, in words that are read meanwhile

STYLE = Path(__file__).resolve().parents[2] / "assets" / "lessons" / "sheet.css"


def sheet_html(lesson: Lesson) -> str:
    """The whole page."""
    heading, style = escape(say("sheet.heading", title=lesson.title)), STYLE.read_text(encoding="utf-8")
    facts = say("sheet.facts", minutes=lesson.minutes, scenes=len(lesson.scenes), model=lesson.model)
    play = f'<a href="../../?lesson={escape(lesson.id)}&amp;scene=1">{escape(say("sheet.play"))}</a>'
    rows = "".join(_row(scene, seconds) for scene, seconds in zip(lesson.scenes, scene_seconds(lesson), strict=True))
    heads = "".join(f"<th>{escape(say(f'sheet.{name}'))}</th>" for name in ("time", "scene", "what"))
    notes = f"<h2>{escape(say('sheet.notes'))}</h2>{_notes(lesson.notes)}" if lesson.notes else ""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{heading}</title><style>{style}</style></head><body><main>"
        f"<h1>{heading}</h1><p>{escape(lesson.summary)}</p>"
        f'<p class="facts">{escape(facts)}</p><p class="screen">{play} · {escape(say("sheet.print"))}</p>'
        f"<h2>{escape(say('sheet.scenes'))}</h2><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
        f"{notes}</main></body></html>"
    )


def scene_seconds(lesson: Lesson) -> list[int]:
    """The lesson's minutes, shared by what there is to read and to do, in steps of five seconds."""
    weights = [_weight(scene) for scene in lesson.scenes]
    each = 60 * lesson.minutes / sum(weights)
    return [max(5, 5 * round(each * weight / 5)) for weight in weights]


def _weight(scene: Scene) -> int:
    read = sum(count_words(text) for text in scene.text) + count_words(scene.then)
    asked = count_words(scene.ask.question) + ACT_WORDS if scene.ask else 0
    return max(1, read + asked + (ACT_WORDS if scene.you else 0))


def _row(scene: Scene, seconds: int) -> str:
    parts = [f"<p>{_prose(text)}</p>" for text in scene.text]
    if scene.ask:
        parts.append(f"<p>{_filled(say.unfilled('sheet.asks'), question=_prose(scene.ask.question))}</p>")
        parts.append(f"<p><b>{_filled(say.unfilled('sheet.answer'), answer=_answer(scene.ask))}</b></p>")
    if scene.you and not scene.ask:
        parts.append(f"<p><i>{escape(say('sheet.you'))}</i></p>")
    if scene.then:
        parts.append(f"<p>→ {_prose(scene.then)}</p>")
    time = escape(say("sheet.seconds", seconds=seconds))
    return f"<tr><td>{time}</td><td>{escape(scene.title)}</td><td>{''.join(parts)}</td></tr>"


def _filled(sentence: str, **html: str) -> str:
    """A sentence around what is HTML already."""
    return escape(sentence).format(**html)


def _answer(ask: Ask) -> str:
    if ask.kind == "guess":
        return escape(say("sheet.guess_answer"))
    if ask.kind == "choose":
        return next(_prose(choice.text) for choice in ask.choices if choice.right)
    right = _live(ask.answer) if isinstance(ask.answer, str) else f"{ask.answer:g}"
    return escape(say.unfilled("sheet.within")).format(answer=right, share=f"{ask.within:.0%}") if ask.within else right


def _live(name: str) -> str:
    return f"<em>{escape(say('sheet.live', name=FIELDS[name]))}</em>"


def _prose(text: Text) -> str:
    return "".join(_span(span) for span in text)


def _span(span: Span) -> str:
    words = escape(span.text)
    if span.kind == "value":
        return f"<em>[{escape(FIELDS[span.text])}]</em>"
    if span.kind == "link":
        address = span.target if "://" in span.target else f"../../{span.target}"
        return f'<a href="{escape(address)}">{words}</a>'
    return {"strong": f"<b>{words}</b>", "code": f"<code>{words}</code>"}.get(span.kind, words)


def _notes(written: str) -> str:
    """Markdown without HTML; a link that leads anywhere but to the web is left as text."""
    reader = markdown()
    reader.validateLink = is_allowed_link  # type: ignore[method-assign, assignment]
    return str(reader.render(written))
