"""Checks of time: two requests in one step, and a step beside this machine's memory."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from engine.costs.bytes import step_bytes
from engine.forward.model_runner import Feed
from engine.measure import machine_rates
from engine.models.loaded_shape import shape_of
from engine.progress import OnProgress
from engine.studies.claim_checks.forwards import (
    NEW_TOKENS,
    OTHER_TEXT,
    TEXT,
    Check,
    back,
    decoded,
    forward,
    ids,
    is_rounding,
    largest,
)
from engine.studies.claim_records import Finding, Reading

if TYPE_CHECKING:
    from engine.llm_engine import LLMEngine

ROUNDS = 7  # of what is timed, in turn


def shared_step(engine: LLMEngine, report: OnProgress) -> Check:
    """Two texts stepped in one forward, and each alone."""
    runner = engine.stepper.runner
    stores = [runner.scratch_store() for _ in range(2)]
    for store, text in zip(stores, (TEXT, OTHER_TEXT), strict=True):
        forward(runner, store, ids(engine, text))
        yield
    feeds = [Feed(store, (ids(engine, TEXT)[-1],)) for store in stores]
    together, alone, off = [], [], 0.0
    for done in range(ROUNDS):
        both = runner.forward(feeds)
        back(stores)
        each = [runner.forward([feed]) for feed in feeds]
        back(stores)
        together.append(both.forward_ms)
        alone.append(sum(one.forward_ms for one in each))
        off = max(off, *(largest(a.logits - b.rows[0].logits) for a, b in zip(both.rows, each, strict=True)))
        report(done + 1, ROUNDS)
        yield
    scores = both.rows[0].logits
    return Finding(
        is_rounding(engine, off, scores),
        "Two requests in one forward get the scores they get alone, "
        + ("bit for bit." if off == 0 else "but for their last digits: the sums run in another order."),
        (
            Reading("one forward for both, median", statistics.median(together), "ms"),
            Reading("one after the other, median", statistics.median(alone), "ms"),
            Reading("largest difference of a score", off, "logit"),
        ),
    )


def streaming(engine: LLMEngine, report: OnProgress) -> Check:
    """Bytes a step must read over its time, beside what memory gives here: a third of that counts as bound by it."""
    runner, fed = engine.stepper.runner, ids(engine, TEXT)
    parameter = next(engine.model.parameters())
    rates = machine_rates.measure(runner.device, parameter.dtype)
    yield
    drawn = yield from decoded(runner, fed, 2 * NEW_TOKENS, report)
    size, shape = parameter.element_size(), shape_of(engine.model.config)
    moved = step_bytes(shape, len(fed) + NEW_TOKENS, weight_dtype_bytes=size, kv_dtype_bytes=size)
    step_ms = drawn.forward_ms[1:]
    reached = moved / (min(step_ms) / 1e3)
    best = rates.gemv_bytes_per_s.best
    return Finding(
        reached > best / 3,
        f"A step reads {moved / 1e9:.3g} GB and takes {min(step_ms):.3g} ms at best: {reached / best:.0%} of the "
        "bandwidth that this machine's memory gave to plain products at best.",
        (
            Reading("read by a step, by formula", moved, "B"),
            Reading("a step's forward, best", min(step_ms), "ms"),
            Reading("a step's forward, median", statistics.median(step_ms), "ms"),
            Reading("so it reads, at best", reached, "B/s"),
            Reading("memory's best, measured", best, "B/s"),
            Reading("memory's median", rates.gemv_bytes_per_s.median, "B/s"),
        ),
    )
