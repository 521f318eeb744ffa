"""Checks of the cache: what is fed, what keys depend on, and whether a result depends on having one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from engine.costs.positions import cached_positions, uncached_positions
from engine.progress import OnProgress
from engine.studies.claim_checks.forwards import (
    NEW_TOKENS,
    OTHER_TEXT,
    TEXT,
    Check,
    decoded,
    decoded_anew,
    forward,
    ids,
    largest,
    moved,
    tolerance,
)
from engine.studies.claim_records import Finding, Reading

if TYPE_CHECKING:
    from engine.llm_engine import LLMEngine

COUNTED = 100


def positions(engine: LLMEngine, report: OnProgress) -> Check:
    """What a decode run feeds, counted."""
    runner, fed = engine.stepper.runner, ids(engine, TEXT)
    drawn = yield from decoded(runner, fed, NEW_TOKENS, report)
    expected = cached_positions(len(fed), NEW_TOKENS)
    return Finding(
        drawn.positions == expected,
        f"{len(fed)} prompt tokens and {NEW_TOKENS} new ones took {drawn.positions} positions: the prompt once, then "
        "one a step; the last token drawn is never fed.",
        (Reading("positions fed", drawn.positions), Reading("P + N − 1", expected), Reading("forwards", NEW_TOKENS)),
    )


def prefix(engine: LLMEngine, report: OnProgress) -> Check:
    """The last token's key and value, behind two different first tokens."""
    runner, fed = engine.stepper.runner, ids(engine, TEXT)
    other = ((fed[0] + 1) % engine.info.vocab_size, *fed[1:])
    stores = []
    for tokens in (fed, other):
        store = runner.scratch_store()
        forward(runner, store, tokens)
        stores.append(store)
        yield
    changes = [moved(stores[0], stores[1], layer, len(fed) - 1, len(fed)) for layer in range(runner.num_layers)]
    still = sum(change <= tolerance(engine) for change in changes)
    deeper = changes[1:] or [0.0]
    return Finding(
        still == runner.num_layers,
        f"With another first token, key and value of token {len(fed)} stay the same in {still} of {runner.num_layers} "
        "layers.",
        (
            Reading("layer 0 moved by", changes[0], "of its size"),
            Reading("deeper, least moved", min(deeper), "of its size"),
            Reading("deeper, most moved", max(deeper), "of its size"),
        ),
    )


def appended(engine: LLMEngine, report: OnProgress) -> Check:
    """Keys and values of a text alone, and of the same text with more behind it, both computed anew."""
    runner, fed = engine.stepper.runner, ids(engine, TEXT)
    short, long = runner.scratch_store(), runner.scratch_store()
    forward(runner, short, fed)
    yield
    forward(runner, long, fed + ids(engine, OTHER_TEXT))
    changes = [moved(short, long, layer, 0, len(fed)) for layer in range(runner.num_layers)]
    return Finding(
        max(changes) <= tolerance(engine),
        f"With {len(ids(engine, OTHER_TEXT))} tokens behind it, the keys and values of all {len(fed)} tokens come out "
        "the same, to rounding.",
        (Reading("layers", runner.num_layers), Reading("most moved", max(changes), "of its size")),
    )


def cached_uncached(engine: LLMEngine, report: OnProgress) -> Check:
    """The same greedy tokens with a cache and without one."""
    runner, fed = engine.stepper.runner, ids(engine, TEXT)
    total = 2 * NEW_TOKENS
    cached = yield from decoded(runner, fed, NEW_TOKENS, lambda done, _: report(done, total))
    anew = yield from decoded_anew(runner, fed, cached.tokens, lambda done, _: report(NEW_TOKENS + done, total))
    off = largest(torch.stack(cached.rows) - torch.stack(anew.rows))
    differing = sum(a != b for a, b in zip(cached.tokens, anew.tokens, strict=True))
    return Finding(
        differing == 0,
        f"{NEW_TOKENS} tokens in {engine.info.dtype}, each drawn from the same text both ways: {differing} differ.",
        (
            Reading("largest difference of a score", off, "logit"),
            Reading("tokens that differ", differing),
            Reading("positions with a cache", cached.positions),
            Reading("positions without", anew.positions),
        ),
    )


def count_100(engine: LLMEngine, report: OnProgress) -> Check:
    """A hundred tokens from one, with a cache and without: every position counted as it is fed."""
    runner, start = engine.stepper.runner, ids(engine, TEXT)[:1]
    total = cached_positions(1, COUNTED) + uncached_positions(1, COUNTED)
    cached = yield from decoded(runner, start, COUNTED, lambda done, _: report(done, total))
    before = cached.positions

    def without(done: int, _: int) -> None:
        report(before + uncached_positions(1, done), total)

    anew = yield from decoded_anew(runner, start, cached.tokens, without)
    return Finding(
        anew.positions == uncached_positions(1, COUNTED) and cached.positions == COUNTED,
        f"{COUNTED} tokens from a prompt of one: {anew.positions:,} positions fed without a cache, {cached.positions} "
        "with one.",
        (
            Reading("without a cache", anew.positions, "positions"),
            Reading("with one", cached.positions, "positions"),
            Reading("forwards without", sum(anew.forward_ms) / 1e3, "s"),
            Reading("forwards with", sum(cached.forward_ms) / 1e3, "s"),
        ),
    )
