"""What a caller can choose: how tokens are drawn, when to stop, how the engine runs.

All values are frozen and check themselves. A `Recipe` is a whole session as plain data:
the KV cache, the records and the browser tab are caches of it and can be rebuilt from it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from engine.errors import InvalidSettings

DtypeName = Literal["auto", "float32", "bfloat16", "float16"]
DeviceName = Literal["auto", "cpu", "cuda"]

MAX_SEED = 2**63 - 1


def _require(ok: bool, message: str) -> None:
    if not ok:
        raise InvalidSettings(message)


def _finite(name: str, value: object) -> None:
    number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    _require(number, f"{name} must be a finite number, got {value!r}.")


def _whole(name: str, value: object) -> None:
    _require(isinstance(value, int) and not isinstance(value, bool), f"{name} must be a whole number, got {value!r}.")


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How the next token is drawn. The defaults leave the model's distribution alone.

    The stages act in the order transformers uses: repetition penalty, temperature, top-k, top-p, min-p.
    """

    temperature: float = 1.0  # 0 is greedy
    top_k: int = 0  # 0 keeps the whole vocabulary
    top_p: float = 1.0  # 1 keeps the whole distribution; 0 keeps the likeliest token
    min_p: float = 0.0  # 0 is off; the floor is min_p times the likeliest token's probability
    repetition_penalty: float = 1.0  # 1 is off; acts once per id seen, prompt included

    def __post_init__(self) -> None:
        for name in ("temperature", "top_p", "min_p", "repetition_penalty"):
            _finite(name, getattr(self, name))
        _whole("top_k", self.top_k)
        _require(self.temperature >= 0, f"temperature must be 0 or more, got {self.temperature}. Use 0 for greedy.")
        _require(self.top_k >= 0, f"top_k must be 0 or more, got {self.top_k}. Use 0 to switch it off.")
        _require(0 <= self.top_p <= 1, f"top_p must be from 0 to 1, got {self.top_p}. Use 1 to switch it off.")
        _require(0 <= self.min_p <= 1, f"min_p must be from 0 to 1, got {self.min_p}. Use 0 to switch it off.")
        _require(
            self.repetition_penalty > 0,
            f"repetition_penalty must be above 0, got {self.repetition_penalty}. Use 1 to switch it off.",
        )

    @property
    def is_greedy(self) -> bool:
        """True where the likeliest token is taken and no uniform number is needed."""
        return self.temperature == 0


PRESETS = MappingProxyType(
    {
        "greedy": SamplingParams(temperature=0.0),
        "unmodified (T = 1)": SamplingParams(),
        "chat defaults": SamplingParams(temperature=0.7, top_k=50, top_p=0.9, repetition_penalty=1.1),
    }
)


@dataclass(frozen=True, slots=True)
class StopRules:
    """When decoding ends. Every rule is checked after every token; the first that fires gives the reason."""

    use_end_ids: bool = True  # stop at any of the model's own EOS tokens
    max_new_tokens: int = 256  # the prompt does not count
    stop_strings: tuple[str, ...] = ()  # matched on the generated text alone; empty strings are ignored
    max_kv_bytes: int = 0  # 0 is off: bytes this session's cache may hold

    def __post_init__(self) -> None:
        _whole("max_new_tokens", self.max_new_tokens)
        _whole("max_kv_bytes", self.max_kv_bytes)
        _require(self.max_new_tokens >= 1, f"max_new_tokens must be 1 or more, got {self.max_new_tokens}.")
        _require(self.max_kv_bytes >= 0, f"max_kv_bytes must be 0 or more, got {self.max_kv_bytes}. Use 0 for off.")
        _require(all(isinstance(s, str) for s in self.stop_strings), "stop_strings must be strings.")


@dataclass(frozen=True, slots=True)
class Budgets:
    """What sessions may take of a machine that is shared; 0 is no limit.

    max_sessions  one more is refused
    kv_bytes      of all caches: over it, the least recently touched idle session is rebuilt at its next touch
    session_kv_bytes, session_new_tokens  caps on the stop rules of every session, whatever they ask for
    looks         studies, checks and long looks of one owner, under way or in line; one more is refused
    """

    max_sessions: int = 0
    kv_bytes: int = 0
    session_kv_bytes: int = 0
    session_new_tokens: int = 0
    looks: int = 0

    def __post_init__(self) -> None:
        for name in ("max_sessions", "kv_bytes", "session_kv_bytes", "session_new_tokens", "looks"):
            value = getattr(self, name)
            _whole(name, value)
            _require(value >= 0, f"{name} must be 0 or more, got {value}. Use 0 for no limit.")

    def capped(self, stop: StopRules) -> StopRules:
        """The stop rules, no laxer than these budgets."""
        new_tokens = _smaller_limit(stop.max_new_tokens, self.session_new_tokens)
        kv_bytes = _smaller_limit(stop.max_kv_bytes, self.session_kv_bytes)
        return replace(stop, max_new_tokens=new_tokens, max_kv_bytes=kv_bytes)


def _smaller_limit(*limits: int) -> int:
    return min((limit for limit in limits if limit), default=0)


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """How the engine runs one model."""

    model: str = "smollm2-135m-instruct"  # a name the registry knows, a Hub id, a folder, or a .gguf file
    dtype: DtypeName = "auto"  # auto: float32 on CPU, the model's own on CUDA
    device: DeviceName = "auto"  # auto: CUDA where there is one
    threads: int = 0  # 0: one per physical core
    prefill_chunk: int = 256  # prompt tokens per forward, so that a long prompt never blocks others for long
    max_batch: int = 64  # sessions per forward
    capture_bytes: int = 1_000_000  # queries and logits kept per session; older steps are replayed when looked at
    prefix_bytes: int = 64_000_000  # prompts kept so that who opens the same need not prefill it; 0 is off
    capture: bool = True  # False drops queries and logits at once (to measure what capturing costs)
    fast_kernels: bool = True  # False leaves the model's modules as transformers built them
    hub_token: bool = True  # False asks the Hub as a stranger: the model was somebody else's idea
    budgets: Budgets = Budgets()

    def __post_init__(self) -> None:
        _require(bool(self.model.strip()), "model must name a model, a folder or a .gguf file; it is empty.")
        _require(self.dtype in ("auto", "float32", "bfloat16", "float16"), f"dtype {self.dtype!r} is not known.")
        _require(self.device in ("auto", "cpu", "cuda"), f"device must be auto, cpu or cuda, got {self.device!r}.")
        least_of = {"threads": 0, "prefill_chunk": 1, "max_batch": 1, "capture_bytes": 0, "prefix_bytes": 0}
        for name, least in least_of.items():
            value = getattr(self, name)
            _whole(name, value)
            _require(value >= least, f"{name} must be {least} or more, got {value}.")


@dataclass(frozen=True, slots=True)
class ChosenToken:
    """One token of the continuation, with what is needed to draw it again.

    forced    a person chose it; `token_id` replaces whatever the draw gave
    sampling, seed  the settings in force at that step
    """

    token_id: int
    forced: bool
    sampling: SamplingParams
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Recipe:
    """A whole session as plain data, enough to rebuild it anywhere by prefilling."""

    model_id: str
    prompt_ids: tuple[int, ...] = ()
    chosen: tuple[ChosenToken, ...] = ()
    sampling: SamplingParams = SamplingParams()  # for the next step
    stop: StopRules = StopRules()
    seed: int = 0  # for the next step

    def __post_init__(self) -> None:
        _whole("seed", self.seed)
        _require(0 <= self.seed <= MAX_SEED, f"seed must be from 0 to {MAX_SEED}, got {self.seed}.")

    @property
    def token_ids(self) -> tuple[int, ...]:
        """Prompt and continuation; after a step the cache holds all of them but the last."""
        return self.prompt_ids + tuple(c.token_id for c in self.chosen)
