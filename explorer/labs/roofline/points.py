"""Points of a roofline: what a prefill and a decode step do per byte, computed for any model, measured for this one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from engine.costs import ModelShape
from engine.costs.bytes import PRECISIONS, prefill_bytes, step_bytes
from engine.costs.flops import decode_flops, prefill_flops
from engine.records import StepRecord
from explorer.labs.roofline.lower_bounds import Levers, Rates, with_attention
from explorer.say import words_beside

say = words_beside(__file__)

BATCHES = (1, 8, 64, 512)
PROMPTS = (16, 128, 1024, 8192)


@dataclass(frozen=True, slots=True)
class Point:
    """Something that was run, or could be: how many operations per byte it does, and how many a second."""

    name: str
    phase: Literal["prefill", "decode"]
    flops: float
    moved: float
    seconds: float
    measured: bool
    said: str = ""

    @property
    def intensity(self) -> float:
        return self.flops / self.moved

    @property
    def rate(self) -> float:
        return self.flops / self.seconds


def computed_points(shape: ModelShape, rates: Rates, context: int, levers: Levers) -> tuple[Point, ...]:
    """Decode at several batches and prefill of several prompts, each as fast as the roof allows."""
    shape = with_attention(shape, levers.attention)
    sizes = {"weight_dtype_bytes": PRECISIONS[levers.weights], "kv_dtype_bytes": PRECISIONS[levers.cache]}
    found = []
    for batch in BATCHES:
        flops = decode_flops(shape, context + 1, batch=batch)
        moved = step_bytes(shape, context, batch=batch, **sizes)
        name = say("points.decode", batch=batch)
        found.append(Point(name, "decode", flops, moved, _seconds(flops, moved, rates, levers), False))
    for prompt in PROMPTS:
        flops = prefill_flops(shape, prompt, last_logits_only=True)
        moved = prefill_bytes(shape, prompt, **sizes)
        name = say("points.prefill", prompt=f"{prompt:,}")
        found.append(Point(name, "prefill", flops, moved, _seconds(flops, moved, rates, levers), False))
    return tuple(found)


def measured_points(records: Sequence[StepRecord], shape: ModelShape, dtype_bytes: int) -> tuple[Point, ...]:
    """A session's own steps, those that had their forward to themselves: the forward's time, nothing else."""
    sizes = {"weight_dtype_bytes": dtype_bytes, "kv_dtype_bytes": dtype_bytes}
    found = []
    for record in records:
        if record.timing is None or record.batch_size != 1 or record.reused_tokens or record.timing.forward_ms <= 0:
            continue
        seconds = record.timing.forward_ms * 1e-3
        if record.phase == "prefill":
            tokens = len(record.input_ids)
            flops, moved = prefill_flops(shape, tokens, last_logits_only=True), prefill_bytes(shape, tokens, **sizes)
            name = say("points.prefill_run", tokens=f"{tokens:,}")
        else:
            flops = decode_flops(shape, record.kv_len)
            moved = step_bytes(shape, record.kv_len - 1, **sizes)
            name = say("points.step", index=record.index, kv_len=f"{record.kv_len:,}")
        found.append(
            Point(
                name,
                record.phase,
                flops,
                moved,
                seconds,
                True,
                say("points.time", forward_ms=f"{record.timing.forward_ms:.3g}"),
            )
        )
    return tuple(found)


def _seconds(flops: float, moved: float, rates: Rates, levers: Levers) -> float:
    peak = rates.peak(levers.weights)
    reading = moved / (levers.devices * rates.bandwidth)
    return max(reading, flops / (levers.devices * peak)) if peak else reading
