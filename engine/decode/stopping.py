"""Why decoding ends: named rules, all checked after every token.

Each rule reports its state whether or not it is armed, so a record shows how near every one of them was.
More than one may fire on the same token; the first in this order gives the reason: numerical failure, EOS token,
stop string, max new tokens, context limit, KV bytes, user, disconnect.

Stop strings are looked for in the generated text alone, never in the prompt, and that text spells special
tokens out even where the screen hides them. The text comes from bytes, so it holds whole characters only.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from engine.config import StopRules
from engine.records import FinishReason, StopCheck


@dataclass(frozen=True, slots=True)
class StopState:
    """A sequence right after one more token was drawn.

    generated_ids    ids drawn or forced so far, the newest last; empty before the first
    text             their text: whole characters, special tokens as their spelling
    checked          characters of it that earlier checks saw: a match must end beyond them
    seq_len          tokens of prompt and continuation, the newest included
    kv_bytes         bytes in this session's cache; the newest token is not in it yet
    kv_bytes_per_token  what feeding one more token will add
    end_probability  of all EOS tokens together in the distribution just sampled from; None where not known
    finite           False where the logits after the newest token are not numbers, so that nothing can follow it
    """

    generated_ids: tuple[int, ...]
    text: str
    seq_len: int
    checked: int = 0
    kv_bytes: int = 0
    kv_bytes_per_token: int = 0
    end_probability: float | None = None
    finite: bool = True
    user_stop: bool = False
    disconnected: bool = False


class StopMatch(NamedTuple):
    """A stop string in the text, and where it begins."""

    stop: str
    start: int


class StopSearch(NamedTuple):
    """What one look for stop strings found; every rule and the screen go by it.

    match    the stop string that begins first, among those that end in what is new
    waiting  characters at the end of the text that may still grow into a stop string
    nearest  the stop string of which the largest part is there, and how many characters that is; None without any
    """

    match: StopMatch | None
    waiting: int
    nearest: tuple[str, int] | None


def search_stops(text: str, stop_strings: Sequence[str], *, checked: int = 0) -> StopSearch:
    """Look for stop strings; those that end within the first `checked` characters were looked for before."""
    stops = [stop for stop in stop_strings if stop]
    found = [StopMatch(stop, at) for stop in stops if (at := text.find(stop, max(0, checked - len(stop) + 1))) >= 0]
    begun = [(stop, _begun(text, stop)) for stop in stops]
    return StopSearch(
        match=min(found, key=lambda match: match.start, default=None),
        waiting=max((count for _, count in begun), default=0),
        nearest=max(begun, key=lambda near: near[1] / len(near[0]), default=None),
    )


def check_stops(
    state: StopState, rules: StopRules, *, end_ids: Sequence[int], context_limit: int | None
) -> tuple[tuple[StopCheck, ...], FinishReason | None, StopSearch]:
    """Every rule's state in order of precedence, the first reason that fired, and what was found of stop strings."""
    found = search_stops(state.text, rules.stop_strings, checked=state.checked)
    checks: tuple[tuple[FinishReason, StopCheck], ...] = (
        ("nan", _numerical_failure(state)),
        ("end_id", _end_ids(state, rules, end_ids)),
        ("stop_string", _stop_strings(found, rules)),
        ("max_new_tokens", _max_new_tokens(state, rules)),
        ("context_limit", _context_limit(state, context_limit)),
        ("kv_bytes", _kv_bytes(state, rules)),
        ("user", _flag("user", "user stop", state.user_stop, "asked for", "not asked for")),
        ("disconnect", _flag("disconnect", "disconnect", state.disconnected, "the page is gone", "the page is there")),
    )
    reason = next((name for name, check in checks if check.fired), None)
    return tuple(check for _, check in checks), reason, found


def split_held(text: str, found: StopSearch, *, finished: bool = False) -> tuple[str, str]:
    """(what may be shown, what is held back). The two joined are always `text`.

    A matched stop string is never shown, nor is anything after it. Before that, the longest ending that could
    still grow into a stop string waits; once decoding has finished it no longer can.
    """
    cut = len(text) - (0 if finished else found.waiting)
    if found.match is not None:
        cut = found.match.start
    return text[:cut], text[cut:]


def _numerical_failure(state: StopState) -> StopCheck:
    words = "the logits of the next step are not numbers", "all logits are numbers"
    return _flag("nan", "numerical failure", not state.finite, *words)


def _end_ids(state: StopState, rules: StopRules, end_ids: Sequence[int]) -> StopCheck:
    newest = state.generated_ids[-1] if state.generated_ids else None
    is_end = newest in end_ids
    armed = rules.use_end_ids and bool(end_ids)
    names = ", ".join(str(i) for i in end_ids)
    label = f"EOS token {newest}" if is_end else f"EOS token{'s' if len(end_ids) > 1 else ''} {names}".rstrip()
    if not end_ids:
        words = "the model declares no EOS token"
    elif is_end:
        words = f"token {newest} is an EOS token"
    elif state.end_probability is not None:
        words = f"probability {state.end_probability:.3g} in this step"
    else:
        words = "not sampled"
    fired = armed and is_end
    nearness = 1.0 if fired else state.end_probability
    return StopCheck("end_id", label, armed, fired, _off(words, rules.use_end_ids), nearness if armed else None)


def _stop_strings(found: StopSearch, rules: StopRules) -> StopCheck:
    if found.nearest is None:
        return StopCheck("stop_string", "stop strings", False, False, "off", None)
    if found.match is not None:
        words = f"found after {found.match.start:,} characters"
        return StopCheck("stop_string", f"stop string {_quoted(found.match.stop)}", True, True, words, 1.0)
    nearest, begun = found.nearest
    words = f"{begun} of {len(nearest)} characters of {_quoted(nearest)}"
    stops = [_quoted(stop) for stop in rules.stop_strings if stop]
    label = "stop string" + ("s " if len(stops) > 1 else " ") + ", ".join(stops)
    return StopCheck("stop_string", label, True, False, words, begun / len(nearest))


def _max_new_tokens(state: StopState, rules: StopRules) -> StopCheck:
    done, most = len(state.generated_ids), rules.max_new_tokens
    words = f"{done:,} of {most:,} new tokens"
    return StopCheck("max_new_tokens", f"max new tokens {most:,}", True, done >= most, words, min(1.0, done / most))


def _context_limit(state: StopState, limit: int | None) -> StopCheck:
    """The rule is prompt + new tokens <= limit, although one more token could be drawn without being fed."""
    if limit is None:
        return StopCheck("context_limit", "context limit", False, False, "the model declares no limit", None)
    words = f"{state.seq_len:,} of {limit:,} tokens; rule: prompt + new tokens <= limit"
    near = min(1.0, state.seq_len / limit)
    return StopCheck("context_limit", f"context limit {limit:,}", True, state.seq_len >= limit, words, near)


def _kv_bytes(state: StopState, rules: StopRules) -> StopCheck:
    """Fires while the cache still keeps to the budget: where the next token would no longer fit."""
    budget = rules.max_kv_bytes
    if not budget:
        return StopCheck("kv_bytes", "KV bytes", False, False, f"off; {state.kv_bytes:,} bytes held", None)
    fired = state.kv_bytes + max(1, state.kv_bytes_per_token) > budget
    words = f"{state.kv_bytes:,} of {budget:,} bytes; the next token adds {state.kv_bytes_per_token:,}"
    near = 1.0 if fired else state.kv_bytes / budget
    return StopCheck("kv_bytes", f"KV bytes {budget:,}", True, fired, words, near)


@cache
def _flag(rule: str, label: str, fired: bool, yes: str, no: str) -> StopCheck:
    """A rule that is always armed and knows no distance."""
    return StopCheck(rule, label, True, fired, yes if fired else no, 1.0 if fired else None)


def _begun(text: str, stop: str) -> int:
    """Length of the longest proper beginning of `stop` that `text` ends with."""
    longest = min(len(stop) - 1, len(text))
    return next((size for size in range(longest, 0, -1) if text.endswith(stop[:size])), 0)


def _quoted(stop: str) -> str:
    return json.dumps(stop, ensure_ascii=False)  # a newline shows as \n


def _off(words: str, on: bool) -> str:
    return words if on else f"off; {words}"
