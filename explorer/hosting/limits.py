"""How one Loupe serves a class: who may come in, how much each may ask for, and what nobody is shown.

On a person's own machine every limit is off (0) and nothing is hidden. `LOUPE_MODE=hosted` turns them on, with
the defaults below. Each can be set by an environment variable, LOUPE_MAX_SESSIONS say, or as `max_sessions` in
the TOML file that LOUPE_CONFIG names; the environment wins.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType

from engine.config import Budgets, Recipe, StopRules
from engine.errors import InvalidSettings, LoupeError

MODES = ("own", "hosted")
LOOKS = 2  # measurements and checks of one tab in a class: one under way, one in line
MAX_BRANCHES = 12  # runs of one tab where no limit is set

IN_A_CLASS: Mapping[str, int | float] = MappingProxyType(
    {
        "max_sessions": 100,
        "max_sessions_per_address": 60,
        "max_prompt_characters": 8_000,
        "max_prompt_tokens": 1_024,
        "max_new_tokens": 256,
        "max_branches": 4,
        "play_rate": 2.0,
        "kv_bytes": 4_000_000_000,
        "session_kv_bytes": 100_000_000,
    }
)


class NotHere(LoupeError):
    """What this server does not do for visitors, said with the reason."""


@dataclass(frozen=True, slots=True)
class Hosting:
    """0 switches a limit off.

    max_sessions           tabs in use at a time; who comes later waits in line
    max_sessions_per_address  of these, from one network address: a classroom shares one
    max_prompt_characters, max_prompt_tokens  of one prompt
    max_new_tokens         the highest limit a visitor may set
    max_branches           runs of one tab; each has a cache of its own
    play_rate              steps per second of one tab, beyond a burst
    kv_bytes               of all caches together, those being filled included
    session_kv_bytes       of one run's cache
    grace_s                after a tab is gone, until its run stops and its cache is freed
    metrics_port           of 127.0.0.1, where Prometheus may read
    host_key               opens the class page; empty: there is no such page
    hosts                  names this server answers to beside its own, separated by commas
    """

    mode: str = "own"
    model: str = ""
    max_sessions: int = 0
    max_sessions_per_address: int = 0
    max_prompt_characters: int = 0
    max_prompt_tokens: int = 0
    max_new_tokens: int = 0
    max_branches: int = 0
    play_rate: float = 0.0
    kv_bytes: int = 0
    session_kv_bytes: int = 0
    grace_s: float = 60.0
    metrics_port: int = 0
    host_key: str = field(default="", repr=False)  # a log must not hold it
    hosts: str = ""

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise InvalidSettings(f"mode must be own or hosted, got {self.mode!r}.")
        for name in (
            "max_sessions",
            "max_sessions_per_address",
            "max_prompt_characters",
            "max_prompt_tokens",
            "max_new_tokens",
        ):
            _require_whole(name, getattr(self, name), 2**50)
        for name in ("kv_bytes", "session_kv_bytes"):
            _require_whole(name, getattr(self, name), 2**50)
        _require_whole("max_branches", self.max_branches, 100)
        _require_whole("metrics_port", self.metrics_port, 65_535)
        _require_number("play_rate", self.play_rate)
        _require_number("grace_s", self.grace_s)
        if self.host_key and len(self.host_key) < 12:
            raise InvalidSettings("host_key must have 12 characters or more, or be empty: then there is no class page.")

    @property
    def names(self) -> list[str]:
        """The names in `hosts`, one by one."""
        return [name for name in (part.strip() for part in self.hosts.split(",")) if name]

    @property
    def is_hosted(self) -> bool:
        """Whether visitors are strangers: no paths, no model of their own, no internals in messages."""
        return self.mode == "hosted"

    @property
    def has_class_page(self) -> bool:
        """Whether there is a page for the host."""
        return self.is_hosted and bool(self.host_key)

    @property
    def most_branches(self) -> int:
        """How many runs one tab may have."""
        return self.max_branches or MAX_BRANCHES

    @property
    def budgets(self) -> Budgets:
        """What the engine keeps to. Each tab has a place for every run, and one for the run that replaces them."""
        return Budgets(
            max_sessions=self.max_sessions * (self.most_branches + 1),
            kv_bytes=self.kv_bytes,
            session_kv_bytes=self.session_kv_bytes,
            session_new_tokens=self.max_new_tokens,
            looks=LOOKS if self.max_sessions else 0,
        )

    def require_own_models(self) -> None:
        """Refuse another model than the server's."""
        if self.is_hosted:
            raise NotHere("This is a class: everybody shares one model, and only its host can change it.")

    def require_length(self, characters: int) -> None:
        """Refuse a prompt before the work of tokenising it."""
        most = self.max_prompt_characters
        if most and characters > most:
            raise NotHere(
                f"The prompt has {characters:,} characters; this class reads at most {most:,}. "
                f"Shorten it by {characters - most:,}."
            )

    def require_tokens(self, tokens: int) -> None:
        """Refuse a prompt before the work of prefilling it."""
        most = self.max_prompt_tokens
        if most and tokens > most:
            raise NotHere(
                f"The prompt is {tokens:,} tokens; this class reads at most {most:,}. Shorten it by {tokens - most:,}."
            )

    def require_recipe(self, recipe: Recipe) -> None:
        """Refuse a saved session that could not have come about here."""
        self.require_tokens(len(recipe.prompt_ids))
        most = self.max_new_tokens
        if most and len(recipe.chosen) > most:
            raise NotHere(
                f"The saved run has {len(recipe.chosen):,} new tokens; this class draws at most {most:,}. "
                "Prefill again."
            )

    def require_stop(self, stop: StopRules) -> None:
        """Refuse a limit on new tokens above the class's."""
        most = self.max_new_tokens
        if most and stop.max_new_tokens > most:
            raise NotHere(
                f"max_new_tokens can be at most {most:,} in this class, got {stop.max_new_tokens:,}. "
                "Start a new prompt to go on."
            )

    def bounded(self, stop: StopRules) -> StopRules:
        """Rules that nobody here chose (a default, a link's, a saved session's) within the class's limits."""
        return self.budgets.capped(stop)

    def chosen(self, stop: StopRules) -> StopRules:
        """Rules as a person chose them: a limit that is only this class's own is left out."""
        own = stop.max_kv_bytes != self.session_kv_bytes
        return stop if own else replace(stop, max_kv_bytes=0)

    def public(self) -> dict[str, bool | int | float]:
        """What the page keeps to by itself, so that nobody runs into a limit unwarned."""
        return {
            "models": not self.is_hosted,
            "share": self.has_class_page,
            "prompt_characters": self.max_prompt_characters,
            "new_tokens": self.max_new_tokens,
            "play_rate": self.play_rate,
        }


def from_environment(environment: Mapping[str, str]) -> Hosting:
    """Read the settings, the file's first and the environment's over them. Raises InvalidSettings in words."""
    given: dict[str, object] = dict(_of_file(environment.get("LOUPE_CONFIG", "").strip()))
    for known in fields(Hosting):
        text = environment.get(f"LOUPE_{known.name.upper()}", "").strip()
        if text:
            given[known.name] = text
    defaults = IN_A_CLASS if given.get("mode") == "hosted" else {}
    return Hosting(**{**defaults, **{name: _read(name, value) for name, value in given.items()}})  # type: ignore[arg-type]


def _of_file(path: str) -> Mapping[str, object]:
    if not path:
        return {}
    try:
        given = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidSettings(f"LOUPE_CONFIG names {path}, which cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidSettings(f"{path} is not TOML: {error}.") from error
    names = {known.name for known in fields(Hosting)}
    unknown = sorted(set(given) - names)
    if unknown:
        raise InvalidSettings(f"{path} sets {unknown[0]!r}, which is not known. Known: {', '.join(sorted(names))}.")
    return given


def _read(name: str, value: object) -> object:
    """A value by the kind its field has; the environment has only text."""
    kind = {known.name: known.type for known in fields(Hosting)}[name]
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise InvalidSettings(f"{name} must be {_KINDS[str(kind)]}, got {value!r}.")
    if kind == "str":
        return str(value)
    try:
        return float(value) if kind == "float" else int(str(value))
    except ValueError:
        raise InvalidSettings(f"{name} must be {_KINDS[str(kind)]}, got {value!r}.") from None


_KINDS = {"int": "a whole number", "float": "a number", "str": "text"}


def _require_whole(name: str, value: object, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise InvalidSettings(f"{name} must be a whole number from 0 to {most:,}, got {value!r}. 0 switches it off.")


def _require_number(name: str, value: float) -> None:
    if not math.isfinite(value) or value < 0:
        raise InvalidSettings(f"{name} must be a number of 0 or more, got {value!r}.")
