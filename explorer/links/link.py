"""Deep links: settings, prompt and choices in the URL, enough to see the same tokens again.

A link carries no handle on a session: people share URLs. `steps` says how many decode steps to take again
after the prefill; `step`, `layer` and `head` only say where to look. Where a person changed settings on the
way, `history` lists what was in force from which step on, and the named settings hold for what comes next.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

from engine.config import SamplingParams, StopRules
from explorer.workspace.examples import PromptMode

MAX_LINK_PROMPT = 2_000  # characters of prompt that a URL carries
MAX_LINK_ENCODED = 8_000  # and the same once percent-encoded: servers cut long URLs
DIGEST_LETTERS = 8

# the name in the URL -> the name in SamplingParams, in the order that `history` lists them
SAMPLING_NAMES = {
    "temperature": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
    "min_p": "min_p",
    "penalty": "repetition_penalty",
}

_DEFAULT_SAMPLING = SamplingParams()
_DEFAULT_STOP = StopRules()


@dataclass(frozen=True, slots=True)
class Settings:
    """What draws a token."""

    sampling: SamplingParams = _DEFAULT_SAMPLING
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Link:
    """What a URL asks for. `notes` say, for people, what in it could not be read.

    model_name  what a run was made with whose model no link can carry: a folder or file of somebody's machine
    steps    decode steps to take after the prefill; None: only fill in the prompt
    forced   step -> token a person chose there
    history  step -> settings in force from there on; empty where they never changed
    fed      `digest` of the ids that a chat's prompt became: a template may write a date, or be another by now
    """

    prompt: str | None = None
    mode: PromptMode = "raw"
    model: str | None = None
    model_name: str | None = None
    settings: Settings = Settings()
    stop: StopRules = _DEFAULT_STOP
    steps: int | None = None
    forced: Mapping[int, int] = field(default_factory=dict)
    history: Mapping[int, Settings] = field(default_factory=dict)
    step: int | None = None
    layer: int | None = None
    head: int | None = None
    fed: str | None = None
    notes: tuple[str, ...] = ()

    def settings_at(self, step: int) -> Settings:
        """The settings with which a step is taken."""
        before = [at for at in self.history if at <= step]
        return self.history[max(before)] if before else self.settings

    @property
    def is_empty(self) -> bool:
        """True where the URL asks for nothing."""
        return self == Link()


def to_query(link: Link) -> str:
    """The link as "?..."; what is at its default is left out."""
    pairs: list[tuple[str, str]] = []
    if link.prompt is not None and not too_long(link.prompt):
        pairs += [("prompt", link.prompt), *_optional("mode", link.mode, "raw")]
    pairs += _optional("model", link.model, None) + _optional("model_name", link.model_name, None)
    pairs += _settings_pairs(link.settings) + _stop_pairs(link.stop)
    if link.prompt is not None and not too_long(link.prompt):
        pairs += _optional("steps", link.steps, None)
        pairs += _optional("fed", link.fed, None)
        pairs += _optional("forced", ",".join(f"{s}:{i}" for s, i in sorted(link.forced.items())), "")
        pairs += _optional("history", ";".join(_history_entry(s, h) for s, h in sorted(link.history.items())), "")
    for name in ("step", "layer", "head"):
        pairs += _optional(name, getattr(link, name), None)
    return "?" + urlencode(pairs, quote_via=quote, safe=":,;") if pairs else ""


def too_long(prompt: str) -> bool:
    """Whether a prompt stays out of the URL."""
    return len(prompt) > MAX_LINK_PROMPT or len(quote(prompt)) > MAX_LINK_ENCODED


def digest(token_ids: Sequence[int]) -> str:
    """Eight letters that tell one prompt from another."""
    return hashlib.sha256(",".join(map(str, token_ids)).encode()).hexdigest()[:DIGEST_LETTERS]


def _optional(name: str, value: object, default: object) -> list[tuple[str, str]]:
    return [] if value == default else [(name, str(value))]


def _plain(number: float) -> str:
    """The shortest digits that read back as the same float: 1, 0.7, 1e-08."""
    return repr(float(number)).removesuffix(".0")


def _settings_pairs(settings: Settings) -> list[tuple[str, str]]:
    pairs = []
    for name, attribute in SAMPLING_NAMES.items():
        value = getattr(settings.sampling, attribute)
        if value != getattr(_DEFAULT_SAMPLING, attribute):
            pairs.append((name, _plain(value)))
    return pairs + _optional("seed", settings.seed, 0)


def _stop_pairs(stop: StopRules) -> list[tuple[str, str]]:
    defaults = _DEFAULT_STOP
    pairs = _optional("max_new", stop.max_new_tokens, defaults.max_new_tokens)
    pairs += _optional("end_ids", int(stop.use_end_ids), int(defaults.use_end_ids))
    pairs += _optional("max_kv", stop.max_kv_bytes, defaults.max_kv_bytes)
    return pairs + [("stop", string) for string in stop.stop_strings]


def _history_entry(step: int, settings: Settings) -> str:
    s = settings.sampling
    numbers = (s.temperature, s.top_k, s.top_p, s.min_p, s.repetition_penalty)
    return f"{step}:" + ",".join([*(_plain(n) for n in numbers), str(settings.seed)])
