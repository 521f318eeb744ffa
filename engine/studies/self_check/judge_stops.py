"""The stop rules of a record, judged again: armed, fired, how near, and every number in their words.

The newest record is judged by the rules in force, as every change of them judges it again. Those of an older step are
not kept, so its limits and stop strings are read from its own labels. Whether somebody asked for a stop is an event:
only its consequence is checked.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

import numpy as np

from engine.config import StopRules
from engine.records import StepRecord, StopCheck
from engine.studies.self_check.findings import Tally
from engine.studies.self_check.judge_text import found_at, text_of
from engine.studies.self_check.judged import Judged
from engine.studies.self_check.scores import Spread

ORDER = ("nan", "end_id", "stop_string", "max_new_tokens", "context_limit", "kv_bytes", "user", "disconnect")
QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")


@dataclass(frozen=True, slots=True)
class Limits:
    """What the rules of a session go by.

    new_tokens     generated so far
    num_tokens     prompt and continuation
    cached_bytes   by the stock model's cache; `token_bytes` for one token more
    """

    end_ids: tuple[int, ...]
    context_limit: int | None
    new_tokens: int
    num_tokens: int
    cached_bytes: int
    token_bytes: int


def judge_stops(tally: Tally, judged: Judged, final: Spread, limits: Limits, before: bytes) -> None:
    """Every rule, in order, and the reason that follows. `before`: the bytes generated before the newest token."""
    record, name = judged.record, judged.name
    tally.same(f"{name} stop rules", tuple(check.rule for check in record.stops), ORDER)
    fired = [check.rule for check in record.stops if check.fired]
    tally.same(f"{name} reason to stop", record.finish_reason, fired[0] if fired else None)
    for check in record.stops:
        tally.same(f"{name} {check.rule} is armed where it fired", check.armed or not check.fired, True)
    by_rule = {check.rule: check for check in record.stops}
    if set(by_rule) != set(ORDER):
        return
    _judge_nan(tally, name, by_rule["nan"], record)
    _judge_end(tally, name, by_rule["end_id"], judged.chosen.token_id, final, limits)
    _judge_strings(tally, name, by_rule["stop_string"], record, len(text_of(before)[0]))
    _judge_limit(tally, name, by_rule["max_new_tokens"], limits.new_tokens, None)
    _judge_context(tally, name, by_rule["context_limit"], limits)
    _judge_bytes(tally, name, by_rule["kv_bytes"], limits)
    for rule in ("user", "disconnect"):
        _judge_flag(tally, name, by_rule[rule], by_rule[rule].fired)


def judge_rules_in_force(tally: Tally, judged: Judged, rules: StopRules) -> None:
    """That the newest record's labels name the limits of the session."""
    by_rule, name = {check.rule: check for check in judged.record.stops}, judged.name
    if set(by_rule) != set(ORDER):
        return
    says_off = _says_off(by_rule["end_id"])
    tally.same(f"{name} EOS tokens are used", not says_off, rules.use_end_ids)
    most = numbers_in(by_rule["max_new_tokens"].label)
    tally.same(f"{name} max_new_tokens in force", most, [float(rules.max_new_tokens)])
    budget = [float(rules.max_kv_bytes)] if rules.max_kv_bytes else []
    tally.same(f"{name} kv_bytes in force", numbers_in(by_rule["kv_bytes"].label), budget)
    named, given = set(stop_strings(judged.record)), {stop for stop in rules.stop_strings if stop}
    found = by_rule["stop_string"].fired  # its label then names the one that was found
    tally.same(f"{name} stop strings in force", named <= given if found else named == given, True)


def numbers_in(words: str) -> list[float]:
    """Every number in a phrase, quoted text apart."""
    return [float(found.replace(",", "")) for found in NUMBER.findall(QUOTED.sub("", words))]


def _says_off(check: StopCheck) -> bool:
    return check.state.startswith("off")


def _judge_flag(tally: Tally, name: str, check: StopCheck, fired: bool) -> None:
    tally.same(f"{name} {check.rule} fired", check.fired, fired)
    tally.same(f"{name} {check.rule} armed", check.armed, True)
    tally.same(f"{name} {check.rule} nearness", check.nearness, 1.0 if fired else None)
    tally.same(f"{name} {check.rule} numbers in words", numbers_in(check.label + check.state), [])


def _judge_nan(tally: Tally, name: str, check: StopCheck, record: StepRecord) -> None:
    logits = record.candidates.logits
    bad = bool(np.isnan(logits).any() or np.isposinf(logits).any() or not np.isfinite(record.candidates.log_sum_exp))
    _judge_flag(tally, name, check, bad)


def _judge_end(tally: Tally, name: str, check: StopCheck, token: int, final: Spread, limits: Limits) -> None:
    """An EOS token ends the run; before that the rule shows the probability of all EOS tokens together, if known."""
    is_end = token in limits.end_ids
    tally.same(f"{name} end_id armed", check.armed, bool(limits.end_ids) and not _says_off(check))
    tally.same(f"{name} end_id fired", check.fired, check.armed and is_end)
    tally.same(
        f"{name} end_id label", numbers_in(check.label), [float(token)] if is_end else [*map(float, limits.end_ids)]
    )
    bounds = [final.prob_of(end) for end in limits.end_ids]
    low, high = sum(b[0] for b in bounds), sum(b[1] for b in bounds)
    words = numbers_in(check.state)
    if check.fired:
        tally.same(f"{name} end_id nearness", check.nearness, 1.0)
    elif check.nearness is not None:
        tally.same(f"{name} end_id has a nearness only where armed", check.armed, True)
        tally.within(f"{name} end_id nearness", check.nearness, low, high)
    if is_end:
        tally.same(f"{name} end_id in words", words, [float(token)])
    else:
        for number in words:
            tally.within(f"{name} end_id in words", number, low * 0.994, high * 1.006)  # three digits


def _judge_strings(tally: Tally, name: str, check: StopCheck, record: StepRecord, seen: int) -> None:
    """Fires where the text that was not there before, its first `seen` characters, completes a stop string."""
    stops, text, words = stop_strings(record), record.text + record.held, numbers_in(check.state)
    start = found_at(text, seen, stops)
    tally.same(f"{name} stop_string armed", check.armed, bool(stops))
    tally.same(f"{name} stop_string fired", check.fired, start is not None)
    if start is not None:
        tally.same(f"{name} stop_string nearness", check.nearness, 1.0)
        tally.same(f"{name} stop_string in words", words, [float(start)])
    elif stops:
        begun = {stop: max(n for n in range(len(stop)) if text.endswith(stop[:n])) for stop in stops}
        nearest = max(stops, key=lambda stop: begun[stop] / len(stop))
        tally.within(f"{name} stop_string nearness", check.nearness, *[begun[nearest] / len(nearest)] * 2)
        tally.same(f"{name} stop_string in words", words, [float(begun[nearest]), float(len(nearest))])
    else:
        tally.same(f"{name} stop_string off", (check.nearness, words), (None, []))


def stop_strings(record: StepRecord) -> tuple[str, ...]:
    """The stop strings that a record's label names."""
    labels = [check.label for check in record.stops if check.rule == "stop_string"]
    return tuple(str(json.loads(quoted)) for label in labels for quoted in QUOTED.findall(label))


def _judge_limit(tally: Tally, name: str, check: StopCheck, done: int, most: int | None) -> None:
    """So many of so many; without `most` the label says it."""
    told = numbers_in(check.label)[-1:] or [0.0]
    limit = float(told[0] if most is None else most)
    tally.same(f"{name} {check.rule} limit", told[0], limit)
    tally.same(f"{name} {check.rule} armed", check.armed, True)
    tally.same(f"{name} {check.rule} fired", check.fired, done >= limit)
    tally.same(f"{name} {check.rule} in words", numbers_in(check.state), [float(done), limit])
    tally.within(f"{name} {check.rule} nearness", check.nearness, *[min(1.0, done / max(limit, 1e-9))] * 2)


def _judge_context(tally: Tally, name: str, check: StopCheck, limits: Limits) -> None:
    if limits.context_limit is not None:
        _judge_limit(tally, name, check, limits.num_tokens, limits.context_limit)
        return
    tally.same(f"{name} context_limit off", (check.armed, check.fired, check.nearness), (False, False, None))
    tally.same(f"{name} context_limit in words", numbers_in(check.label + check.state), [])


def _judge_bytes(tally: Tally, name: str, check: StopCheck, limits: Limits) -> None:
    """Fires where one token more would pass the budget."""
    told = numbers_in(check.label)[-1:]
    held = float(limits.cached_bytes)
    if not told:
        tally.same(f"{name} kv_bytes off", (check.armed, check.fired, check.nearness), (False, False, None))
        tally.same(f"{name} kv_bytes in words", numbers_in(check.state), [held])
        return
    fired = held + limits.token_bytes > told[0]
    tally.same(f"{name} kv_bytes armed", check.armed, True)
    tally.same(f"{name} kv_bytes fired", check.fired, fired)
    tally.same(f"{name} kv_bytes in words", numbers_in(check.state), [held, told[0], float(limits.token_bytes)])
    tally.within(f"{name} kv_bytes nearness", check.nearness, *[1.0 if fired else held / told[0]] * 2)
