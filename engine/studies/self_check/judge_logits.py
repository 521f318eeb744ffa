"""The raw logits of a record: the 256 likeliest, the histogram of the others, their log-sum-exp."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.records import CANDIDATES, SHOWN, TAIL_BINS
from engine.studies.self_check.findings import Distance, Tally
from engine.studies.self_check.judged import Judged
from engine.studies.self_check.scores import Spread


def is_readable(tally: Tally, judged: Judged) -> bool:
    """Whether the candidates can be looked up at all: known ids, each once, as many as there should be."""
    candidates, size = judged.record.candidates, judged.stock.size
    count = min(CANDIDATES, size)
    tally.same(f"{judged.name} number of candidates", candidates.ids.shape, (count,))
    tally.same(f"{judged.name} number of candidates' logits", candidates.logits.shape, (count,))
    ids = candidates.ids
    known = bool(ids.size) and int(ids.min()) >= 0 and int(ids.max()) < size and np.unique(ids).size == ids.size
    tally.same(f"{judged.name} candidates are different tokens of the vocabulary", known, True)
    shown = {stage.probs.shape for stage in judged.record.stages}
    tally.same(f"{judged.name} number of shown probabilities", shown, {(min(SHOWN, size),)})
    return known and candidates.logits.shape == ids.shape == (count,) and shown == {(min(SHOWN, size),)}


def judge_logits(distance: Distance, tally: Tally, judged: Judged, spread: Spread) -> None:
    """Logits against the stock model's; order, histogram and flags against the logits."""
    candidates, name = judged.record.candidates, judged.name
    distance.add(f"{name} candidates", candidates.logits, judged.stock[candidates.ids], judged.slack)
    if judged.ours is not None:
        distance.add(f"{name} all logits", judged.ours, judged.stock, judged.slack)
        tally.all_same(f"{name} candidate logit", candidates.logits, judged.ours[candidates.ids])
    falls = np.lexsort((candidates.ids, -candidates.logits.astype(np.float64)))
    tally.all_same(f"{name} rank of candidate", falls, np.arange(falls.size))
    seen = frozenset(judged.context)
    expected = np.array([token in seen for token in candidates.ids.tolist()])
    tally.all_same(f"{name} candidate seen before", candidates.seen, expected)
    tally.within(f"{name} log-sum-exp", candidates.log_sum_exp, *spread.log_sum_exp)
    _judge_tail(tally, judged)


def _judge_tail(tally: Tally, judged: Judged) -> None:
    """How many of the other logits fall in each bin: what lies below each edge, counted for both ends of a logit."""
    candidates, name = judged.record.candidates, judged.name
    low, high = _others(judged)
    counts = candidates.tail_counts.astype(np.int64)
    tally.same(f"{name} number of bins", counts.shape, (TAIL_BINS,))
    tally.same(f"{name} sum of the histogram", int(counts.sum()), low.size)
    tally.same(f"{name} counts below zero", int((counts < 0).sum()), 0)
    if not low.size:
        tally.same(f"{name} edges of an empty histogram", (candidates.tail_low, candidates.tail_high), (0.0, 0.0))
        return
    tally.within(f"{name} largest logit that is no candidate", low[-1], -np.inf, float(candidates.logits[-1]))
    tally.within(f"{name} largest logit of the rest", candidates.tail_high, low[-1], high[-1])
    tally.within(f"{name} smallest logit of the rest", candidates.tail_low, low[0], high[0])
    edges = np.linspace(candidates.tail_low, candidates.tail_high, TAIL_BINS + 1)[1:-1]
    if counts.shape != (TAIL_BINS,) or not np.isfinite(edges).all() or edges[0] == edges[-1]:
        return
    hair = 1e-9 * (1 + np.abs(edges))  # a logit on an edge
    least, most = np.searchsorted(high, edges - hair, "left"), np.searchsorted(low, edges + hair, "right")
    below = np.cumsum(counts)[:-1].astype(np.float64)
    tally.all_within(f"{name} logits below edge", below, least.astype(np.float64), most.astype(np.float64))


def _others(judged: Judged) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The logits that are no candidates', rising: the least that each may be, and the largest."""
    exact, candidates = judged.ours is not None, judged.record.candidates
    left_out = np.ones(judged.stock.size, dtype=np.bool_)
    left_out[candidates.ids] = False
    row = (judged.ours if judged.ours is not None else judged.stock)[left_out]
    found = np.sort(row[row > -np.inf]).astype(np.float64)
    slack = 0.0 if exact else judged.slack
    return found - slack, found + slack
