"""A chat rendered twice: as it is, and with a stand-in for every character that a person typed.

The second shows what was typed wherever the template puts it. Where it is not the first one in stand-ins, the template
has looked at typed text in a way that cannot be followed; then only the characters that could begin a control token
are hidden from it, and that is said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Literal

from engine.errors import PromptError
from engine.text.chat_template import ChatTemplate, Turn
from engine.text.typed_text import Alphabet, typed_text

ChatRole = Literal["system", "user", "assistant"]
Shape = Callable[[ChatRole, str], Turn]

REWRITTEN = "The chat template rewrites the messages, so typed text cannot be told from the template's own."
CHANGED = "The chat template changes the message: the tokens below are what the model reads."
LEFT_OUT = (
    "The model's chat template leaves the message out: nothing of it is in the text that the model would read. "
    "Use the raw prompt."
)


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One turn of a conversation."""

    role: ChatRole
    text: str


@dataclass(frozen=True, slots=True)
class RenderedChat:
    """A chat as text, and the same with stand-ins where somebody typed.

    told  every typed character has its stand-in; else only those that could begin a control token
    """

    text: str
    marked: str
    alphabet: Alphabet
    told: bool
    notes: tuple[str, ...] = ()

    def is_typed(self, start: int, end: int) -> bool:
        """Whether a person typed any of these characters."""
        return self.alphabet.has_mark(self.marked[start : max(end, start + 1)])


def render_chat(template: ChatTemplate, messages: Sequence[ChatMessage], hide: frozenset[str]) -> RenderedChat:
    """The chat with its content as text; as a list of parts where the template wants that.

    hide  what a typed character must not be where typed text cannot be followed
    """
    now = datetime.now()
    fault = PromptError(LEFT_OUT)
    for shape in (_as_text, _as_parts):
        try:
            found = _rendered(partial(_render, template, messages, now, shape), messages, hide)
        except PromptError as error:
            fault = error if shape is _as_text else fault
            continue
        if found is not None:
            return found
    raise fault


Render = Callable[[Alphabet, frozenset[str] | None], str]


def _render(
    template: ChatTemplate,
    messages: Sequence[ChatMessage],
    now: datetime,
    shape: Shape,
    alphabet: Alphabet,
    hide: frozenset[str] | None,
) -> str:
    """One rendering, with stand-ins for what of the typed characters is hidden; None hides all."""
    typed = typed_text(alphabet)
    turns = []
    for message in messages:
        marked = alphabet.mark(message.text, hide)
        turns.append(shape(message.role, typed(marked) if marked != message.text else message.text))
    return template.render(turns, now, typed)


def _rendered(render: Render, messages: Sequence[ChatMessage], hide: frozenset[str]) -> RenderedChat | None:
    """A chat in one shape; None where the template leaves out its last message."""
    text = render(Alphabet(), frozenset())
    every, message = Alphabet(), messages[-1].text.strip()
    try:
        marked = render(every, None)
    except PromptError:
        return _partly_marked(render, text, hide) if message in text else None
    shown = every.plain(every.only_marked(marked))
    if message and not shown.strip():
        return None
    if every.plain(marked) == text:
        return RenderedChat(text, marked, every, True, () if _is_whole(messages, shown) else (CHANGED,))
    return _partly_marked(render, text, hide)


def _partly_marked(render: Render, text: str, hide: frozenset[str]) -> RenderedChat:
    few, characters = Alphabet(), " ".join(sorted(hide))
    try:
        marked = render(few, hide)
    except PromptError as error:
        raise PromptError(
            "The model's chat template looks for characters that begin control tokens, and fails where they are hidden "
            f"from it. Take {characters} out of the message."
        ) from error
    if few.plain(marked) == text:
        return RenderedChat(text, marked, few, False, (REWRITTEN,))
    hidden = f"What was typed of {characters} was hidden from the template, so it may have written other text."
    return RenderedChat(few.plain(marked), marked, few, False, (REWRITTEN, hidden))


def _as_text(role: ChatRole, text: str) -> Turn:
    return {"role": role, "content": text}


def _as_parts(role: ChatRole, text: str) -> Turn:
    return {"role": role, "content": [{"type": "text", "text": text}]}


def _is_whole(messages: Sequence[ChatMessage], shown: str) -> bool:
    """Whether what is shown is all that was typed, spaces aside."""
    return "".join(shown.split()) == "".join("".join(message.text.split()) for message in messages)
