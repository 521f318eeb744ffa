"""Scores as a distribution, and the small summaries of it that a record keeps.

All sums are float64, because over a large vocabulary a 16- or 32-bit sum is visibly off. A token that was
cut has no entry here at all, so its probability is 0 and it adds nothing to the entropy: never 0 * -inf.

Letters in shapes: V vocabulary, S tokens not cut, N candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from engine.records import CANDIDATES, SHOWN, TAIL_BINS, Candidates, Stage

TOP = 16  # likeliest tokens named at every stage
RANKED = 1024  # likeliest tokens put in order: ranking a whole vocabulary takes milliseconds, and few draws need it


@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """The softmax of one stage's scores over the tokens that stage kept.

    ids          (S,) int64, rising
    scores       (S,) float32, all finite
    probs        (S,) float64, sums to 1
    order        (min(S, RANKED),) places in these arrays, likeliest first, equal ones by rising id
    log_sum_exp  over the S scores, so that probability = exp(score - log_sum_exp)
    """

    ids: NDArray[np.int64]
    scores: NDArray[np.float32]
    probs: NDArray[np.float64]
    order: NDArray[np.int64]
    log_sum_exp: float
    entropy_bits: float

    @property
    def kept(self) -> int:
        """Tokens not cut. At a tiny temperature most of them hold less than float64 can show."""
        return int(self.ids.size)

    def has(self, token_id: int) -> bool:
        """Whether a token was not cut, however little it holds."""
        place = int(np.searchsorted(self.ids, token_id))
        return place < self.kept and int(self.ids[place]) == token_id

    def probs_of(self, token_ids: NDArray[np.integer]) -> NDArray[np.float64]:
        """Probability of each token, 0 where it was cut."""
        place = np.minimum(np.searchsorted(self.ids, token_ids), self.kept - 1)
        return np.where(self.ids[place] == token_ids, self.probs[place], 0.0)

    def prob_of(self, token_id: int) -> float:
        """Probability of one token, 0 where it was cut."""
        return float(self.probs_of(np.array([token_id]))[0])


def distribution(scores: NDArray[np.float32]) -> Distribution:
    """Softmax over the finite entries of scores (V,); at least one must be finite."""
    ids = np.flatnonzero(scores > -np.inf)  # (S,)
    assert ids.size, "a stage cut every token"
    kept = scores if ids.size == scores.size else scores[ids]  # (S,)
    top = float(kept.max())
    below = kept.astype(np.float64) - top  # (S,) at most 0: exp cannot overflow at any temperature
    weights = np.exp(below)  # (S,)
    total = float(weights.sum())  # 1 or more
    # Not `weights @ below`: that wakes BLAS threads, which cost more than the whole row.
    mean_below = float((weights * below).sum()) / total  # a weight of 0 adds 0
    return Distribution(
        ids=ids,
        scores=kept,
        probs=weights / total,
        order=ranked(kept, RANKED),
        log_sum_exp=top + float(np.log(total)),
        entropy_bits=max(0.0, float((np.log(total) - mean_below) / np.log(2))),
    )


def ranked(scores: NDArray[np.float32], count: int) -> NDArray[np.int64]:
    """Indices of the `count` largest scores, falling; equal scores stay in rising order of index."""
    pool = np.arange(scores.size)
    if count < scores.size:
        floor = torch.from_numpy(scores).topk(count).values[-1].item()  # three times as fast as numpy's partition
        pool = np.flatnonzero(scores >= floor)  # everything tied with the last one, so that ties break by index
    return pool[np.argsort(-scores[pool], kind="stable")[:count]]


def removed_mass(before: Distribution, after: Distribution) -> float:
    """Probability that `before` gave to the tokens `after` no longer has."""
    if before.kept == after.kept:
        return 0.0
    gone = np.ones(before.kept, dtype=np.bool_)
    gone[np.searchsorted(before.ids, after.ids)] = False
    return min(1.0, float(before.probs[gone].sum()))


def stage_summary(name: str, label: str, after: Distribution, before: Distribution, shown: NDArray[np.int32]) -> Stage:
    """One stage as a record keeps it; `shown` are the ids whose probability is kept at every stage."""
    top = after.order[:TOP]
    return Stage(
        name=name,
        label=label,
        kept=after.kept,
        removed_mass=removed_mass(before, after),
        entropy_bits=after.entropy_bits,
        top_ids=after.ids[top].astype(np.int32),
        top_probs=after.probs[top],
        probs=after.probs_of(shown[:SHOWN]),
    )


def candidates_of(logits: NDArray[np.float32], raw: Distribution, context_ids: Sequence[int]) -> Candidates:
    """The likeliest raw logits (V,) with their ids, and a histogram of the rest. `raw` is their distribution."""
    count = CANDIDATES + 1
    all_finite = raw.kept == logits.size  # else a token of no chance may be among the first
    ranking = raw.order[:count] if all_finite else ranked(logits, count)
    ids, rest = ranking[:CANDIDATES], ranking[CANDIDATES:]  # (N,), and the likeliest token left out, if there is one
    low, high = _tail_edges(logits, rest)
    return Candidates(
        ids=ids.astype(np.int32),
        logits=logits[ids],
        seen=np.isin(ids, np.asarray(context_ids, dtype=np.int64)),
        log_sum_exp=raw.log_sum_exp,
        tail_counts=_tail_counts(logits, ids, low, high),
        tail_low=low,
        tail_high=high,
    )


def _tail_edges(logits: NDArray[np.float32], rest: NDArray[np.int64]) -> tuple[float, float]:
    """Lowest and highest finite logit outside the candidates; (0, 0) where there is none."""
    if not rest.size or logits[rest[0]] == -np.inf:
        return 0.0, 0.0
    low = logits.min()
    if low == -np.inf:
        low = logits[logits > -np.inf].min()
    return float(low), float(logits[rest[0]])


def _tail_counts(logits: NDArray[np.float32], ids: NDArray[np.int64], low: float, high: float) -> NDArray[np.int32]:
    """Tokens outside `ids` per equal bin from low to high; a logit of -inf is no token that could be drawn."""
    in_tail = logits > -np.inf  # (V,)
    in_tail[ids] = False
    width = (high - low) / TAIL_BINS or 1.0  # all equal: everything falls in the first bin
    bins = ((logits[in_tail] - np.float64(low)) / width).astype(np.int64).clip(0, TAIL_BINS - 1)
    return np.bincount(bins, minlength=TAIL_BINS).astype(np.int32)
