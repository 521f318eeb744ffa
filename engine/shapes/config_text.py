"""The one door for configs as text: pasted, from a link, or fetched. Bounded before anything is read from them.

What comes out is a JSON object of bounded size and depth whose whole numbers have a bounded length.
"""

from __future__ import annotations

import json
from typing import Any

from engine.errors import InvalidConfig

MOST_CHARACTERS = 1_000_000
MOST_DEPTH = 32
MOST_DIGITS = 40
WAY_OUT = "Paste the whole of a model's config.json, braces included."


def parse(text: str) -> dict[str, Any]:
    """The config that this text is. Raises InvalidConfig."""
    if not text.strip():
        raise InvalidConfig(f"There is no config here yet. {WAY_OUT}")
    if len(text) > MOST_CHARACTERS:
        raise InvalidConfig(
            f"This text has {len(text):,} characters; a config has at most {MOST_CHARACTERS:,}. {WAY_OUT}"
        )
    if (depth := _depth(text)) > MOST_DEPTH:
        raise InvalidConfig(f"This text nests {depth:,} brackets; a config nests at most {MOST_DEPTH}. {WAY_OUT}")
    try:
        found = json.loads(text, parse_int=_whole)
    except json.JSONDecodeError as error:
        raise InvalidConfig(
            f"This is not JSON: {error.msg} in line {error.lineno}, column {error.colno}. "
            "Paste the whole of config.json, from the first brace to the last."
        ) from error
    if not isinstance(found, dict):
        raise InvalidConfig(f"A config is one JSON object with named fields, got a {type(found).__name__}.")
    return found


def _depth(text: str) -> int:
    """How deep brackets nest, those within strings left out. Nothing here recurses, whatever the text is."""
    deepest = depth = 0
    in_string = escaped = False
    for letter in text:
        if in_string:
            in_string = escaped or letter != '"'
            escaped = letter == "\\" and not escaped
        elif letter == '"':
            in_string = True
        elif letter in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif letter in "]}":
            depth -= 1
    return deepest


def _whole(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise InvalidConfig(f"{digits[:12]}… is a number of {len(digits):,} digits. No config has that: mend it.")
    return int(digits)
