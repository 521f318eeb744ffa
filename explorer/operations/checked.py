"""Values from outside (the browser, a URL, a tab's storage) are checked here before anything is done with them.

JSON's true is an int to Python and its 3 may come as 3.0; both are traps, so every number is checked by kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from engine.config import MAX_SEED, SamplingParams, StopRules
from engine.errors import LoupeError
from explorer.workspace.examples import PromptMode

MAX_TEXT = 400_000  # characters: far above any context this program runs, far below what hurts the server
MAX_STOP_STRINGS = 16
_LARGEST = 10**300  # beyond, a whole number is no float any more


class BadCommand(LoupeError):
    """The page asked for something that cannot be: a program's mistake, or a forged message."""


def short(value: object) -> str:
    """A value for a message: never long, never a control character."""
    try:
        text = repr(value)
    except ValueError:  # Python writes no number of more than some thousand digits
        return "a number of thousands of digits"
    return text if len(text) <= 60 else text[:57] + "..."


def whole(value: object, name: str, low: int, high: int) -> int:
    """A whole number within bounds; 3.0 counts, true does not."""
    is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if not is_whole or isinstance(value, bool):
        raise BadCommand(f"{name} must be a whole number, got {short(value)}.")
    number = int(cast(float, value))
    if not low <= number <= high:
        raise BadCommand(f"{name} must be from {low} to {high}, got {short(number)}.")
    return number


def text(value: object, name: str, longest: int = MAX_TEXT) -> str:
    """Text that can be encoded: half of a surrogate pair is no character."""
    if not isinstance(value, str):
        raise BadCommand(f"{name} must be text, got {short(value)}.")
    if len(value) > longest:
        raise BadCommand(f"{name} is {len(value):,} characters long; at most {longest:,} are read. Shorten it.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadCommand(f"{name} holds half of a character, which no model can read. Type it again.") from None
    return value


def flag(value: object, name: str) -> bool:
    """True or false, nothing that merely counts as it."""
    if not isinstance(value, bool):
        raise BadCommand(f"{name} must be true or false, got {short(value)}.")
    return value


def prompt_mode(value: object) -> PromptMode:
    """How a prompt is fed."""
    if value == "raw":
        return "raw"
    if value == "chat":
        return "chat"
    raise BadCommand(f"mode must be raw or chat, got {short(value)}.")


def mapping(value: object, name: str) -> Mapping[str, object]:
    """A JSON object."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise BadCommand(f"{name} must be an object, got {short(value)}.")
    return value


def sequence(value: object, name: str, longest: int) -> Sequence[object]:
    """A JSON array."""
    if not isinstance(value, (list, tuple)):
        raise BadCommand(f"{name} must be a list, got {short(value)}.")
    if len(value) > longest:
        raise BadCommand(f"{name} has {len(value):,} entries; at most {longest:,} are read.")
    return value


def pair(value: object, name: str) -> tuple[object, object]:
    """A JSON array of two."""
    found = sequence(value, name, 2)
    if len(found) != 2:
        raise BadCommand(f"{name} must have two parts, got {short(value)}.")
    return found[0], found[1]


def known_keys(value: Mapping[str, object], name: str, known: Sequence[str]) -> None:
    """Refuse what would be ignored silently."""
    unknown = sorted(set(value) - set(known))
    if unknown:
        raise BadCommand(f"{name} has no {short(unknown[0])}.")


def sampling(value: object, base: SamplingParams) -> SamplingParams:
    """Sampling settings; what is not given stays as in `base`. The values check themselves."""
    given = mapping(value, "sampling")
    names = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty")
    known_keys(given, "sampling", names)
    chosen: dict[str, object] = {name: given.get(name, getattr(base, name)) for name in names}
    for name, number in chosen.items():
        if isinstance(number, int) and abs(number) > _LARGEST:
            raise BadCommand(f"{name} must be a number that fits a float, got {short(number)}.")
    top_k = chosen["top_k"]
    if isinstance(top_k, float) and top_k.is_integer():
        chosen["top_k"] = int(top_k)
    checked = SamplingParams(**chosen)  # type: ignore[arg-type]
    floats = (checked.temperature, checked.top_p, checked.min_p, checked.repetition_penalty)
    temperature, top_p, min_p, penalty = (float(x) for x in floats)
    return SamplingParams(temperature, checked.top_k, top_p, min_p, penalty)


def stop_rules(value: object, base: StopRules) -> StopRules:
    """Stop rules; what is not given stays as in `base`."""
    given = mapping(value, "stop")
    known_keys(given, "stop", ("use_end_ids", "max_new_tokens", "stop_strings", "max_kv_bytes"))
    strings = sequence(given.get("stop_strings", base.stop_strings), "stop_strings", MAX_STOP_STRINGS)
    return StopRules(
        use_end_ids=flag(given.get("use_end_ids", base.use_end_ids), "use_end_ids"),
        max_new_tokens=whole(given.get("max_new_tokens", base.max_new_tokens), "max_new_tokens", 1, 1_000_000),
        stop_strings=tuple(text(s, "a stop string", 200) for s in strings),
        max_kv_bytes=whole(given.get("max_kv_bytes", base.max_kv_bytes), "max_kv_bytes", 0, 2**50),
    )


def seed(value: object) -> int:
    """A seed; as text where it is larger than the browser's numbers."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 19:
        return whole(int(value), "seed", 0, MAX_SEED)
    return whole(value, "seed", 0, MAX_SEED)
