"""Checks of the model itself: rows of scores, memory between calls, greedy decoding twice, attention in tiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from engine.decode.inspection import inputs_of
from engine.errors import UnsupportedModel
from engine.progress import OnProgress
from engine.studies.claim_checks.forwards import (
    NEW_TOKENS,
    OTHER_TEXT,
    ROUNDING,
    TEXT,
    Check,
    decoded,
    forward,
    ids,
    is_rounding,
    largest,
)
from engine.studies.claim_records import Finding, Reading
from engine.tiles import exact, two_passes, walk

if TYPE_CHECKING:
    from engine.llm_engine import LLMEngine


def logit_rows(engine: LLMEngine, report: OnProgress) -> Check:
    """One row of scores per position; the last is all that decoding uses."""
    runner, fed = engine.stepper.runner, ids(engine, TEXT)
    rows = forward(runner, runner.scratch_store(), fed, every_row=True)
    yield
    last = forward(runner, runner.scratch_store(), fed)
    size = rows.logits.element_size()
    off = largest(rows.logits[-1] - last.logits[-1])
    return Finding(
        tuple(rows.logits.shape) == (len(fed), engine.info.vocab_size) and is_rounding(engine, off, rows.logits),
        f"{len(fed)} positions went in and {len(rows.logits)} rows of {rows.logits.shape[1]:,} scores came out. Asked "
        "for one row, the model gives the last.",
        (
            Reading("rows", len(rows.logits)),
            Reading("scores in a row", rows.logits.shape[1]),
            Reading("all rows, float32", rows.logits.numel() * size, "B"),
            Reading("the one that is used", last.logits.numel() * size, "B"),
            Reading("last row, alone against among all", off, "logit"),
        ),
    )


def stateless(engine: LLMEngine, report: OnProgress) -> Check:
    """The same text before and after another one."""
    runner = engine.stepper.runner
    first = forward(runner, runner.scratch_store(), ids(engine, TEXT)).logits
    yield
    forward(runner, runner.scratch_store(), ids(engine, OTHER_TEXT))
    yield
    again = forward(runner, runner.scratch_store(), ids(engine, TEXT)).logits
    differing = int((first != again).sum())
    return Finding(
        differing == 0,
        "Scores of a text, before and after the model read another one: "
        + ("not a bit differs." if not differing else "some differ."),
        (Reading("scores compared", first.numel()), Reading("that differ", differing)),
    )


def greedy(engine: LLMEngine, report: OnProgress) -> Check:
    """The same prompt, decoded greedily twice, alone in its forwards."""
    runner, fed = engine.stepper.runner, ids(engine, TEXT)
    total = 2 * NEW_TOKENS
    first = yield from decoded(runner, fed, NEW_TOKENS, lambda done, _: report(done, total))
    again = yield from decoded(runner, fed, NEW_TOKENS, lambda done, _: report(NEW_TOKENS + done, total))
    differing = sum(a != b for a, b in zip(first.tokens, again.tokens, strict=True))
    bits = int((torch.stack(first.rows) != torch.stack(again.rows)).sum())
    return Finding(
        differing == 0,
        f"{NEW_TOKENS} tokens, twice, in a batch of their own: {differing} differ, and {bits} of their scores.",
        (Reading("tokens that differ", differing), Reading("scores that differ", bits)),
    )


def tiles(engine: LLMEngine, report: OnProgress) -> Check:
    """Every head of the model, walked in tiles of two keys."""
    runner, fed = engine.stepper.runner, ids(engine, TEXT)
    if not runner.keys_are_cached:
        raise UnsupportedModel("This model caches no keys and values as they are, so there are none to walk over.")
    store = runner.scratch_store()
    queries = forward(runner, store, fed).queries
    if not queries:
        raise UnsupportedModel("This engine runs with capture off, so no query was kept to walk with.")
    by_tiles = at_once = 0.0
    for layer, asked in queries.items():
        keys, values = store.view(layer, len(fed))
        for head in range(len(asked.query)):
            inputs = inputs_of(asked, keys, values, head)
            right = exact(inputs)
            by_tiles = max(by_tiles, float(np.abs(walk(inputs, 2)[-1].after.divided - right).max()))
            at_once = max(at_once, float(np.abs(two_passes(inputs) - right).max()))
        report(layer + 1, runner.num_layers)
        yield
    heads = sum(len(asked.query) for asked in queries.values())
    return Finding(
        by_tiles <= ROUNDING,
        f"{heads} heads over {len(fed)} keys, two keys a tile: the outputs are those of float64, to float32 rounding.",
        (
            Reading("heads", heads),
            Reading("tiles, furthest from float64", by_tiles),
            Reading("two passes, furthest from float64", at_once),
        ),
    )
