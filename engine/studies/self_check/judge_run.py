"""Ids, positions, lengths, settings, sums of tokens; times and memory as far as they can be checked at all."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import psutil

from engine.config import SamplingParams
from engine.records import StepRecord
from engine.studies.self_check.findings import Tally
from engine.studies.self_check.judged import Judged

TOTAL_MS = "total_ms"


def judge_ids(tally: Tally, judged: Judged, num_prompt: int, most_sessions: int, chunk: int) -> None:
    """What was fed, where, and what came out, against the recipe."""
    record, step, name = judged.record, judged.step, judged.name
    fed = judged.context if step == 0 else judged.context[-1:]
    kv_len = num_prompt + step
    tally.same(f"{name} index", record.index, step)
    tally.same(f"{name} phase", record.phase, "decode" if step else "prefill")
    tally.same(f"{name} input ids", record.input_ids, fed)
    tally.same(f"{name} positions", record.positions, tuple(range(kv_len - len(fed), kv_len)))
    tally.same(f"{name} emitted ids", record.emitted_ids, (judged.chosen.token_id,))
    tally.same(f"{name} kv_len", record.kv_len, kv_len)
    for setting in fields(SamplingParams):
        expected = getattr(judged.chosen.sampling, setting.name)
        tally.same(f"{name} {setting.name}", getattr(record.sampling, setting.name), expected)
    _judge_counts(tally, judged, len(fed), most_sessions, chunk)


def _judge_counts(tally: Tally, judged: Judged, num_fed: int, most_sessions: int, chunk: int) -> None:
    """How the forward pass was shared. That nobody else knows, so only what must hold of it is checked."""
    record, name, is_first = judged.record, judged.name, judged.step == 0
    tally.within(f"{name} reused tokens", record.reused_tokens, 0, num_fed if is_first else 0)
    tally.same(f"{name} forward passes", record.forwards, math.ceil((num_fed - record.reused_tokens) / chunk))
    tally.same(f"{name} logit rows", record.logit_rows, 0 if record.reused_tokens == num_fed else 1)
    tally.within(f"{name} batch size", record.batch_size, 1, 1 if is_first else most_sessions)
    made_again, before = record.rebuilt_tokens + record.recovered_tokens, record.kv_len - 1
    least = 0 if made_again == 0 else before  # all that the step found cached, once or more often
    tally.within(f"{name} rebuilt tokens", min(record.rebuilt_tokens, record.recovered_tokens), 0, math.inf)
    tally.within(f"{name} rebuilt and recovered tokens", made_again, least, 0 if is_first else math.inf)


def judge_times(tally: Tally, record: StepRecord, name: str) -> None:
    """Each part is a time, and the parts fit into the whole. A clock cannot be read a second time."""
    timing = record.timing
    if timing is None:
        return
    parts: dict[str, Any] = {f.name: getattr(timing, f.name) for f in fields(timing) if f.name.endswith("_ms")}
    total = parts.pop(TOTAL_MS)
    tally.within(f"{name} {TOTAL_MS}", total, 0, 1e12)
    for part, spent in parts.items():
        tally.within(f"{name} {part}", spent, 0, 1e12)
    tally.within(f"{name} sum of the parts in ms", sum(parts.values()), 0, total)


def judge_memory(tally: Tally, record: StepRecord, name: str, weight_bytes: int, *, is_cuda: bool) -> None:
    """Weights against the stock model's tensors; what the system says can only be checked for sense."""
    memory = record.memory
    tally.same(f"{name} weight bytes", memory.weight_bytes, weight_bytes)
    tally.within(
        f"{name} reserved cache bytes", memory.kv_reserved_bytes, memory.kv_live_bytes, psutil.virtual_memory().total
    )
    if memory.process_bytes is not None:  # the system may not say
        tally.within(f"{name} process bytes", memory.process_bytes, 1, psutil.virtual_memory().total)
    device = memory.device_allocated_bytes
    if is_cuda:
        tally.within(f"{name} device bytes", device, 1, math.inf)
    else:
        tally.same(f"{name} device bytes", device, None)
    tally.within(f"{name} captured bytes", memory.capture_bytes, 0, max(memory.process_bytes or math.inf, device or 0))
