"""Scores as a distribution, and the small summaries of it that a record keeps.

All sums are float64, because over a large vocabulary a 16- or 32-bit sum is visibly off. A token that was
cut has no entry here at all, so its probability is 0 and it adds nothing to the entropy: never 0 * -inf.

Everything here takes one row, with numpy and on one thread, also for a batch: a row of scores fits the processor's
cache and a batch of them does not, which makes the same sums over the whole batch take more than twice as long.

Letters in shapes: V vocabulary, S tokens not cut, R tokens in order, N candidates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.decode.buffers import empty
from engine.decode.ranking import Ranking, rank
from engine.decode.sums import Sums, parts_of, sums_of
from engine.errors import NumericalFailure
from engine.records import CANDIDATES, SHOWN, TAIL_BINS, Candidates, Stage

TOP = 16  # likeliest tokens named at every stage
RANKED = CANDIDATES  # likeliest scores whose tokens are put in order

EXACT_ABOVE = 1e-3  # what is left of 1 has thirteen digits from here on

INNER_EDGES = np.arange(1.0, TAIL_BINS)  # of the histogram, in bins

Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """The softmax of one stage's scores over the tokens that stage kept.

    size     V, also where fewer are kept
    ids      (S,) rising; None where every token is kept, so that a token's place is its id
    scores   (S,) float32, all finite
    ranking  the likeliest places in these arrays, at least min(S, TOP) of them
    rising   (S,) the scores alone, in order; None where nobody has needed that
    sums     of its weights
    """

    size: int
    ids: Places | None
    scores: NDArray[np.float32]
    ranking: Ranking
    rising: NDArray[np.float32] | None
    sums: Sums

    @property
    def kept(self) -> int:
        """Tokens not cut. At a tiny temperature most of them hold less than float64 can show."""
        return int(self.scores.size)

    @property
    def log_sum_exp(self) -> float:
        """Over the scores: a token's probability is exp(score - this)."""
        return float(self.top) + float(np.log(self.sums.total))

    @property
    def entropy_bits(self) -> float:
        """Of the tokens kept."""
        total, weighted = self.sums
        return max(0.0, float((np.log(total) - weighted / total) / np.log(2)))

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

    def in_order(self) -> NDArray[np.float32]:
        """The scores (S,), rising."""
        return np.sort(self.scores) if self.rising is None else self.rising

    def place_in_order(self, number: int) -> int:
        """Where the token is that has `number` others before it by falling score, equal ones by place."""
        rising = self.in_order()
        score = rising[self.kept - 1 - number]
        before = self.kept - int(np.searchsorted(rising, score, side="right"))
        return int(np.flatnonzero(self.scores == score)[number - before])

    def probs_at(self, places: Places | slice) -> NDArray[np.float64]:
        """Probabilities of the tokens at some places."""
        return self.probs_for(self.scores[places])

    def probs_for(self, scores: NDArray[np.float32]) -> NDArray[np.float64]:
        """Probabilities of tokens that have these scores."""
        weights = np.subtract(scores, self.top, dtype=np.float64)
        np.exp(weights, out=weights)
        return np.divide(weights, self.sums.total, out=weights)

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
        return 0.0 if place is None else float(np.exp(float(self.scores[place]) - float(self.top)) / self.sums.total)

    def row(self) -> NDArray[np.float32]:
        """The scores (V,) of all tokens, -inf where one was cut."""
        if self.ids is None:
            return self.scores
        whole = np.full(self.size, -np.inf, dtype=np.float32)
        whole[self.ids] = self.scores
        return whole


def distribution(
    scores: NDArray[np.float32],
    *,
    size: int,
    ids: Places | None = None,
    ranking: Ranking | None = None,
    rising: NDArray[np.float32] | None = None,
    sums: Sums | None = None,
) -> Distribution:
    """Softmax over finite scores (S,), at least one, of a vocabulary of `size` tokens.

    ids      whose scores they are; None: everybody's
    ranking, rising, sums  where they are known already
    """
    assert scores.size, "a stage cut every token"
    if ranking is None or ranking.order.size < min(scores.size, TOP):
        ranking = rank(scores, RANKED, rising=rising)
    sums = sums or sums_of(scores, float(scores[ranking.order[0]]))
    return Distribution(size, ids, scores, ranking, rising, sums)


def of_row(logits: NDArray[np.float32]) -> Distribution:
    """The softmax of raw scores (V,), of which those that are -inf have no part. Raises NumericalFailure."""
    rising = empty(logits.size)
    np.copyto(rising, logits)
    rising.sort()  # a processor with wide vectors sorts a vocabulary as fast as it adds it up, and three parts read it
    if not np.isfinite(rising[-1]):  # tells every bad case: NaN comes last, +inf before it, and all -inf leave -inf
        raise NumericalFailure(_what_is_wrong(logits))
    if rising[0] > -np.inf:
        return distribution(logits, size=logits.size, rising=rising)
    ids = np.flatnonzero(logits > -np.inf)
    return distribution(logits[ids], size=logits.size, ids=ids, rising=rising[-ids.size :])


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
    ranking = raw.ranking if raw.ids is None else rank(logits, CANDIDATES)
    ids = ranking.order[:CANDIDATES]  # (N,)
    in_context = np.zeros(logits.size, dtype=np.bool_)
    in_context[context_ids] = True
    counts, low, high = _tail(raw.in_order()[: -ids.size])
    return Candidates(
        ids=ids.astype(np.int32),
        logits=logits[ids],
        seen=in_context[ids],
        log_sum_exp=raw.log_sum_exp,
        tail_counts=counts,
        tail_low=low,
        tail_high=high,
    )


def _tail(rest: NDArray[np.float32]) -> tuple[NDArray[np.int32], float, float]:
    """A histogram of logits that rise, and its edges."""
    if not rest.size:
        return np.zeros(TAIL_BINS, dtype=np.int32), 0.0, 0.0
    low, high = float(rest[0]), float(rest[-1])
    ends = np.full(TAIL_BINS + 1, rest.size, dtype=np.int32)  # of the bins, counted in logits
    ends[0] = 0
    if low == high:  # everything falls in the first bin
        return ends[1:] - ends[:-1], low, high
    edges = low + INNER_EDGES * ((high - low) / TAIL_BINS)
    starts = edges.astype(np.float32)
    np.nextafter(starts, np.float32(np.inf), out=starts, where=starts < edges)  # the first float32 from each edge on
    ends[1:-1] = np.searchsorted(rest, starts)
    return ends[1:] - ends[:-1], low, high
