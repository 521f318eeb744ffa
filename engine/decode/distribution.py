"""Scores as a distribution, and the small summaries of it that a record keeps.

All sums are float64, because over a large vocabulary a 16- or 32-bit sum is visibly off. A token that was
cut has no entry here at all, so its probability is 0 and it adds nothing to the entropy: never 0 * -inf.

Everything here takes one row, with numpy and on one thread, also for a batch: a row of scores fits the processor's
cache and a batch of them does not, which makes the same sums over the whole batch take more than twice as long.

Letters in shapes: V vocabulary, S tokens not cut, R tokens in order, N candidates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.decode.ranking import Ranking, rank
from engine.errors import NumericalFailure
from engine.records import CANDIDATES, SHOWN, TAIL_BINS, Candidates, Stage

TOP = 16  # likeliest tokens named at every stage
RANKED = CANDIDATES + 1  # likeliest raw scores put in order: the candidates, and where the others begin

PART = 12_288  # entries worked on at a time; in float64 still below what the C library maps page by page
EXACT_ABOVE = 1e-3  # what is left of 1 has thirteen digits from here on

Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """The softmax of one stage's scores over the tokens that stage kept.

    size     V, also where fewer are kept
    ids      (S,) rising; None where every token is kept, so that a token's place is its id
    scores   (S,) float32, all finite
    ranking  the likeliest places in these arrays, at least min(S, TOP) of them
    total    sum of all weights; a token's weight is exp(score - largest score), its probability that over `total`
    """

    size: int
    ids: Places | None
    scores: NDArray[np.float32]
    ranking: Ranking
    total: float
    log_sum_exp: float
    entropy_bits: float

    @property
    def kept(self) -> int:
        """Tokens not cut. At a tiny temperature most of them hold less than float64 can show."""
        return int(self.scores.size)

    @property
    def top(self) -> np.float32:
        """The largest score."""
        return np.float32(self.scores[self.ranking.order[0]])

    def ids_at(self, places: Places) -> Places:
        """The tokens at some places."""
        return places if self.ids is None else self.ids[places]

    def places_of(self, token_ids: NDArray[np.integer]) -> tuple[Places, NDArray[np.bool_] | None]:
        """Where tokens are, and which of them are there at all; None where all are. Else the place means nothing."""
        if self.ids is None:
            return token_ids.astype(np.int64), None
        places = np.minimum(np.searchsorted(self.ids, token_ids), self.kept - 1)
        return places, self.ids[places] == token_ids

    def probs_at(self, places: Places | slice) -> NDArray[np.float64]:
        """Probabilities of the tokens at some places."""
        weights = np.subtract(self.scores[places], self.top, dtype=np.float64)
        np.exp(weights, out=weights)
        return np.divide(weights, self.total, out=weights)

    def probs_of(self, token_ids: NDArray[np.integer]) -> NDArray[np.float64]:
        """Probability of each token, 0 where it was cut."""
        places, held = self.places_of(token_ids)
        probs = self.probs_at(places)
        return probs if held is None else np.where(held, probs, 0.0)

    def place_of(self, token_id: int) -> int | None:
        """Where a token is; None where it was cut."""
        if self.ids is None:
            return token_id
        place = int(np.searchsorted(self.ids, token_id))
        return place if place < self.kept and self.ids[place] == token_id else None

    def prob_of(self, token_id: int) -> float:
        """Probability of one token, 0 where it was cut."""
        place = self.place_of(token_id)
        return 0.0 if place is None else float(self.probs_at(np.array([place]))[0])

    def row(self) -> NDArray[np.float32]:
        """The scores (V,) of all tokens, -inf where one was cut."""
        if self.ids is None:
            return self.scores
        whole = np.full(self.size, -np.inf, dtype=np.float32)
        whole[self.ids] = self.scores
        return whole


def distribution(
    scores: NDArray[np.float32], *, size: int, ids: Places | None = None, ranking: Ranking | None = None
) -> Distribution:
    """Softmax over finite scores (S,), at least one, of a vocabulary of `size` tokens.

    ids      whose scores they are; None: everybody's
    ranking  where it is known already
    """
    assert scores.size, "a stage cut every token"
    if ranking is None or ranking.order.size < min(scores.size, TOP):
        ranking = rank(scores, min(scores.size, RANKED))
    top = float(scores[ranking.order[0]])
    total = weighted = 0.0
    for part in parts_of(scores.size):
        below = np.subtract(scores[part], top, dtype=np.float64)  # at most 0: exp cannot overflow at any temperature
        weights = np.exp(below)
        total += float(weights.sum())  # 1 or more in the end
        # Not `weights @ below`: that wakes BLAS threads, which cost more than the whole row.
        weighted += float(np.multiply(weights, below, out=below).sum())  # a weight of 0 adds 0
    return Distribution(
        size=size,
        ids=ids,
        scores=scores,
        ranking=ranking,
        total=total,
        log_sum_exp=top + float(np.log(total)),
        entropy_bits=max(0.0, float((np.log(total) - weighted / total) / np.log(2))),
    )


def parts_of(size: int) -> Iterator[slice]:
    """A row in parts: what is computed on the way to a sum stays near the processor."""
    return (slice(start, start + PART) for start in range(0, size, PART))


def of_row(logits: NDArray[np.float32]) -> Distribution:
    """The softmax of raw scores (V,), of which those that are -inf have no part. Raises NumericalFailure."""
    top = logits.max()
    if not np.isfinite(top):  # the one maximum tells every bad case: NaN wins it, so does +inf, and all -inf leave -inf
        raise NumericalFailure(_what_is_wrong(logits))
    if logits.min() > -np.inf:
        return distribution(logits, size=logits.size)
    ids = np.flatnonzero(logits > -np.inf)
    return distribution(logits[ids], size=logits.size, ids=ids)


def _what_is_wrong(logits: NDArray[np.float32]) -> str:
    what = "no finite score"
    if bad := np.count_nonzero(np.isnan(logits)):
        what = f"NaN for {bad:,} of {logits.size:,} scores"
    elif infinite := np.count_nonzero(np.isposinf(logits)):
        what = f"+infinity for {infinite:,} of {logits.size:,} scores"
    return (
        f"The model returned {what}, so no token can be drawn. "
        "Rewind to an earlier step, or load the model in float32 if it runs in 16 bits."
    )


def kept_at(before: Distribution, places: Places) -> Distribution:
    """What is left of `before` at `places`, which rise; the same distribution where that is everything."""
    if places.size == before.kept:
        return before
    return distribution(before.scores[places], size=before.size, ids=before.ids_at(places))


def removed_mass(before: Distribution, after: Distribution) -> float:
    """Probability that `before` gave to the tokens `after` no longer has. Where it is small, it is their own sum."""
    if before.kept == after.kept:
        return 0.0
    assert after.ids is not None, "where tokens were cut, it is known which are left"
    kept = before.places_of(after.ids)[0]
    mass = 1.0 - float(before.probs_at(kept).sum())
    if mass > EXACT_ABOVE:
        return mass
    gone = np.ones(before.kept, dtype=np.bool_)
    gone[kept] = False
    return float(sum(float((before.probs_at(part) * gone[part]).sum()) for part in parts_of(before.kept)))


def stage_summary(name: str, label: str, after: Distribution, before: Distribution, shown: NDArray[np.int32]) -> Stage:
    """One stage as a record keeps it; `shown` are the ids whose probability is kept at every stage."""
    top = after.ranking.order[:TOP]
    return Stage(
        name=name,
        label=label,
        kept=after.kept,
        removed_mass=removed_mass(before, after),
        entropy_bits=after.entropy_bits,
        top_ids=after.ids_at(top).astype(np.int32),
        top_probs=after.probs_at(top),
        probs=after.probs_of(shown[:SHOWN]),
    )


def candidates_of(logits: NDArray[np.float32], raw: Distribution, context_ids: Places) -> Candidates:
    """The likeliest raw logits (V,) with their ids, and a histogram of the rest. `raw` is their distribution."""
    # Where some are -inf, a token of no chance may be among the first.
    ranking = raw.ranking if raw.ids is None else rank(logits, min(logits.size, RANKED))
    ids, rest = ranking.order[:CANDIDATES], ranking.order[CANDIDATES:RANKED]  # (N,), and the likeliest token left out
    in_context = np.zeros(logits.size, dtype=np.bool_)
    in_context[context_ids] = True
    counts, low, high = _tail(raw.scores, ids.size, logits[rest])
    return Candidates(
        ids=ids.astype(np.int32),
        logits=logits[ids],
        seen=in_context[ids],
        log_sum_exp=raw.log_sum_exp,
        tail_counts=counts,
        tail_low=low,
        tail_high=high,
    )


def _tail(
    finite: NDArray[np.float32], num_candidates: int, rest: NDArray[np.float32]
) -> tuple[NDArray[np.int32], float, float]:
    """A histogram of the `finite` logits that are no candidate's, and its edges; `rest` begins with the largest one."""
    if not rest.size or rest[0] == -np.inf:  # a logit of -inf is no token that could be drawn
        return np.zeros(TAIL_BINS, dtype=np.int32), 0.0, 0.0
    low, high = float(finite.min()), float(rest[0])
    counts = _binned(finite, low, high)
    counts[_binned(rest[:1], low, high).argmax()] -= num_candidates  # none of them is below `high`
    return counts, low, high


def _binned(logits: NDArray[np.float32], low: float, high: float) -> NDArray[np.int32]:
    """How many of `logits`, none below `low`, fall into each equal bin; what is above `high` counts as that."""
    width = (high - low) / TAIL_BINS or 1.0  # all equal: everything falls in the first bin
    counts = np.zeros(TAIL_BINS + 1, dtype=np.int64)
    for part in parts_of(logits.size):
        exact = np.subtract(np.minimum(logits[part], np.float32(high)), low, dtype=np.float64)
        bins = np.divide(exact, width, out=exact).astype(np.int32)
        counts += np.bincount(bins, minlength=TAIL_BINS + 1)
    counts[TAIL_BINS - 1] += counts[TAIL_BINS]  # the upper edge belongs to the last bin
    return counts[:TAIL_BINS].astype(np.int32)
