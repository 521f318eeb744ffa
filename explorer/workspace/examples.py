"""Prompts to start from, each chosen for what it makes visible. Plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PromptMode = Literal["raw", "chat"]


@dataclass(frozen=True, slots=True)
class Example:
    """A prompt and how it is fed: as it stands, or through the model's chat template."""

    label: str
    prompt: str
    mode: PromptMode = "raw"


EXAMPLES: tuple[Example, ...] = (
    Example("The cat sat", "The cat sat"),
    Example("Time flies", "Time flies like an arrow; fruit flies like"),
    Example("A chat turn", "Why is the sky blue?", "chat"),
    Example("Emoji", "The 🦊 ate the 鰻 and then"),  # characters that are split over several tokens
    Example("Code", "def fibonacci(n):\n    if n"),  # newlines and spaces are tokens too
)
