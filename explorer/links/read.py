"""Reading a deep link's query parameters: whatever cannot be read is said, and falls back to its default.

A URL comes from anywhere: cut off by a chat program, edited by hand, or made to hurt. Nothing in it may
stop the page from opening.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from engine.config import SamplingParams, StopRules
from engine.errors import LoupeError
from explorer.links.link import DIGEST_LETTERS, SAMPLING_NAMES, Link, Settings
from explorer.operations import checked

MAX_STEPS = 10_000
MAX_CHARACTERS = 64_000  # of a whole link; ours carry some 8,000 of prompt and a history
_MAX_ID = 2**31 - 1

T = TypeVar("T")


def parse(params: Mapping[str, Sequence[str]]) -> Link:
    """Read query parameters. What cannot be read falls back to its default and leaves a note."""
    size = sum(len(name) + len(value) for name, values in params.items() for value in values)
    if size > MAX_CHARACTERS:
        return Link(notes=(f"The link has {size:,} characters; at most {MAX_CHARACTERS:,} are read, so none were.",))
    reader = _Reader(params)
    prompt = reader.one("prompt", lambda raw: checked.text(raw, "prompt"), None)
    step = reader.one("step", lambda raw: _whole(raw, "step", MAX_STEPS), None)
    return Link(
        prompt=prompt,
        mode=reader.one("mode", checked.prompt_mode, "raw"),
        model=reader.one("model", lambda raw: checked.text(raw, "model", 300) or None, None),
        model_name=reader.one("model_name", lambda raw: checked.text(raw, "model_name", 300) or None, None),
        settings=Settings(_read_sampling(reader), reader.one("seed", checked.seed, 0)),
        stop=_read_stop(reader),
        steps=reader.one("steps", lambda raw: _whole(raw, "steps", MAX_STEPS), step),
        forced=reader.one("forced", _forced, {}),
        history=reader.one("history", _history, {}),
        step=step,
        layer=reader.one("layer", lambda raw: _whole(raw, "layer", 10_000), None),
        head=reader.one("head", lambda raw: _whole(raw, "head", 10_000), None),
        fed=reader.one("fed", _fed, None),
        notes=tuple(reader.notes),
    )


class _Reader:
    """Query parameters, and notes on those that could not be read."""

    def __init__(self, params: Mapping[str, Sequence[str]]) -> None:
        self._params = params
        self.notes: list[str] = []

    def all(self, name: str) -> Sequence[str]:
        return self._params.get(name, ())

    def one(self, name: str, read: Callable[[str], T], default: T) -> T:
        """The last value given under `name`."""
        given = self.all(name)
        if not given:
            return default
        try:
            return read(given[-1])
        except (LoupeError, ValueError) as error:
            shown = "nothing" if default in (None, {}) else checked.short(default)
            self.notes.append(f"The link's {name} was not understood, so {shown} is used. {error}")
            return default


def _read_sampling(reader: _Reader) -> SamplingParams:
    sampling = SamplingParams()
    for name, attribute in SAMPLING_NAMES.items():
        base = sampling  # bound now: `one` calls the reader at once

        def read(raw: str, name: str = name, attribute: str = attribute, base: SamplingParams = base) -> SamplingParams:
            return checked.sampling({attribute: _real(raw, name)}, base)

        sampling = reader.one(name, read, sampling)
    return sampling


def _read_stop(reader: _Reader) -> StopRules:
    defaults = StopRules()
    max_new = reader.one("max_new", lambda raw: _whole(raw, "max_new", 1_000_000), defaults.max_new_tokens)
    end_ids = reader.one("end_ids", lambda raw: bool(_whole(raw, "end_ids", 1)), defaults.use_end_ids)
    max_kv = reader.one("max_kv", lambda raw: _whole(raw, "max_kv", 2**50), defaults.max_kv_bytes)
    given = {"use_end_ids": end_ids, "max_new_tokens": max_new, "max_kv_bytes": max_kv}
    strings = list(reader.all("stop"))
    try:
        return checked.stop_rules({**given, "stop_strings": strings}, defaults)
    except LoupeError as error:
        reader.notes.append(f"The link's stop rules were not understood, so the usual ones are used. {error}")
        return defaults


def _real(raw: str, name: str) -> float:
    try:
        return float(raw)
    except ValueError:
        raise checked.BadCommand(f"{name} must be a number, got {checked.short(raw)}.") from None


def _whole(raw: str, name: str, high: int) -> int:
    if not (raw.isascii() and raw.isdigit()):
        raise checked.BadCommand(f"{name} must be a whole number, got {checked.short(raw)}.")
    return checked.whole(int(raw[:20]), name, 0, high)


def _fed(raw: str) -> str:
    if len(raw) != DIGEST_LETTERS or not set(raw) <= set("0123456789abcdef"):
        raise checked.BadCommand(f"fed must be {DIGEST_LETTERS} hexadecimal digits, got {checked.short(raw)}.")
    return raw


def _forced(raw: str) -> dict[int, int]:
    forced = {}
    for entry in raw.split(",") if raw else []:
        step, _, token_id = entry.partition(":")
        forced[_whole(step, "forced", MAX_STEPS)] = _whole(token_id, "forced", _MAX_ID)
    return forced


def _history(raw: str) -> dict[int, Settings]:
    history = {}
    for entry in raw.split(";") if raw else []:
        step, _, numbers = entry.partition(":")
        values = numbers.split(",")
        if len(values) != len(SAMPLING_NAMES) + 1:
            raise checked.BadCommand(f"history must hold entries like 0:1,0,1,0,1,0, got {checked.short(entry)}.")
        given = {a: _real(v, "history") for a, v in zip(SAMPLING_NAMES.values(), values, strict=False)}
        settings = Settings(checked.sampling(given, SamplingParams()), checked.seed(values[-1]))
        history[_whole(step, "history", MAX_STEPS)] = settings
    if history and 0 not in history:
        raise checked.BadCommand("history must begin at step 0.")
    return history
