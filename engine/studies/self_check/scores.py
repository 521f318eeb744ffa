"""One step's logits as far as they are known, and what each stage of sampling makes of them: in float64, apart
from the code that samples.

A record keeps its 256 likeliest logits to the bit, and of the others only a histogram. The stock model's forward
pass gives every logit, but rounds differently. So a logit is known either exactly or to lie between two numbers,
and everything that follows from it (kept or not, probability, entropy, interval) lies between two numbers too.
These are interval sums: no tolerance is chosen here. Where all logits are known, both ends meet.

Letters in shapes: S tokens that may be kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from engine.config import SamplingParams
from engine.studies.self_check.bounds import FLOAT32_EPS

LARGEST, SMALLEST = float(np.finfo(np.float32).max), float(np.finfo(np.float32).tiny)
PROCESSOR_ROUNDING = 32 * FLOAT32_EPS  # transformers' processors compare float32 probabilities: sums of roundings
F64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """The tokens that may be kept after a stage.

    ids   (S,) int64, rising
    low   (S,) float64, high (S,): each score lies between them
    sure  (S,) bool: kept however the scores lie; the others only may be
    """

    ids: NDArray[np.int64]
    low: F64
    high: F64
    sure: NDArray[np.bool_]

    def only(self, may: NDArray[np.bool_], sure: NDArray[np.bool_]) -> Scores:
        """What a cut leaves."""
        return Scores(self.ids[may], self.low[may], self.high[may], (self.sure & sure)[may])

    def place(self, token_id: int) -> int | None:
        """Where a token stands in these arrays; None where it is surely cut."""
        place = int(np.searchsorted(self.ids, token_id))
        return place if place < self.ids.size and self.ids[place] == token_id else None

    def places(self, ids: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Places of several tokens, and which of them are there at all."""
        places = np.minimum(np.searchsorted(self.ids, ids), self.ids.size - 1)
        return places, self.ids[places] == ids

    def before(self, place: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Tokens that surely, and that possibly, stand before the one at `place`: by falling score, then rising id."""
        low, high = self.low[place], self.high[place]
        surely, possibly = self.low > high, self.high >= low
        equal = (self.low == self.high) & (self.low == low) & (low == high)
        surely = surely | (equal & (self.ids < self.ids[place]))
        possibly = possibly & ~(equal & (self.ids >= self.ids[place]))
        possibly[place] = False
        return surely, possibly


def known_scores(row: F64, slack: float, ids: NDArray[np.integer], logits: NDArray[np.floating]) -> Scores:
    """The stock model's row (V,), each within `slack`, with the record's own logits where it keeps them.

    What a record does not keep is no likelier than the least of what it keeps.
    """
    low, high = row - slack, np.minimum(row + slack, logits.min(initial=np.inf))
    low = np.minimum(low, high)
    low[ids], high[ids] = logits, logits
    may = high > -np.inf
    return Scores(np.flatnonzero(may), low[may], high[may], np.ones(int(may.sum()), dtype=np.bool_))


def exact_scores(row: NDArray[np.floating]) -> Scores:
    """A row (V,) that is known to the bit."""
    return known_scores(row.astype(np.float64), 0.0, np.empty(0, np.int64), np.empty(0))


def staged(raw: Scores, seen: frozenset[int], params: SamplingParams) -> list[tuple[str, str, Scores]]:
    """Name, setting and scores of every stage that is on, in transformers' order."""
    stages = [("logits", "", raw)]
    if params.repetition_penalty != 1:
        stages.append(
            ("repetition_penalty", f"{params.repetition_penalty:.6g}", _penalised(stages[-1][2], seen, params))
        )
    if params.temperature == 0:
        return [*stages, ("greedy", "0", _top_k(stages[-1][2], 1, ties=False))]
    if params.temperature != 1:
        stages.append(("temperature", f"{params.temperature:.6g}", _tempered(stages[-1][2], params.temperature)))
    if params.top_k > 0:
        stages.append(("top_k", str(params.top_k), _top_k(stages[-1][2], params.top_k, ties=True)))
    if params.top_p < 1:
        stages.append(("top_p", f"{params.top_p:.6g}", _top_p(stages[-1][2], params.top_p)))
    if params.min_p > 0:
        stages.append(("min_p", f"{params.min_p:.6g}", _min_p(stages[-1][2], params.min_p)))
    return stages


def _float32(scores: F64) -> F64:
    """What float32 makes of float64 results; what is out of its range stays finite."""
    return np.clip(scores, -LARGEST, LARGEST).astype(np.float32).astype(np.float64)


def _penalised(scores: Scores, seen: frozenset[int], params: SamplingParams) -> Scores:
    """A positive score is divided by the penalty, a negative one multiplied: once per token seen."""
    penalty = float(np.float32(min(max(params.repetition_penalty, SMALLEST), LARGEST)))
    hit = np.isin(scores.ids, np.fromiter(seen, np.int64, len(seen)), kind="table")

    def act(values: F64) -> F64:
        with np.errstate(over="ignore"):
            changed = _float32(np.where(values < 0, values * penalty, values / penalty))
        return np.where(hit, changed, values)

    return Scores(scores.ids, act(scores.low), act(scores.high), scores.sure)


def _tempered(scores: Scores, temperature: float) -> Scores:
    divisor = float(np.float32(min(max(temperature, SMALLEST), LARGEST)))
    top = float(scores.high.max())
    shift = top if abs(top) > LARGEST * divisor else 0.0  # the largest would leave float32's range
    return Scores(
        scores.ids, _float32((scores.low - shift) / divisor), _float32((scores.high - shift) / divisor), scores.sure
    )


def _top_k(scores: Scores, k: int, *, ties: bool) -> Scores:
    """The k largest, and those equal to the last of them; without ties the lowest id alone."""
    if k >= scores.ids.size:
        return scores
    kth_low = np.partition(scores.low, -k)[-k]
    next_high, kth_high = np.partition(scores.high, (-k - 1, -k))[[-k - 1, -k]]
    may = scores.high >= kth_low
    # Fewer than k others may lie above: a token whose ends differ is itself among those whose upper end does.
    sure = scores.low >= np.where(scores.low < scores.high, next_high, kth_high)
    if not ties and sure.sum() > 1:  # equal to the bit: the first
        may = sure = np.arange(sure.size) == int(sure.argmax())
    elif not ties and may.sum() > 1:
        sure = np.zeros_like(sure)
    return scores.only(may, sure)


def _top_p(scores: Scores, top_p: float) -> Scores:
    """Kept while the mass of all likelier tokens is below top_p; the likeliest always."""
    spread = Spread(scores)
    ahead_high = _mass_above(scores.high, spread.high_weights, scores.low, inclusive=True) - spread.high_weights
    ahead_low = _mass_above(scores.low, spread.low_weights, scores.high, inclusive=False)
    with np.errstate(divide="ignore", invalid="ignore"):
        most = np.where(ahead_high > 0, ahead_high / spread.total_low, 0.0)
    least = ahead_low / spread.total_high
    may, sure = least - PROCESSOR_ROUNDING < top_p, most + PROCESSOR_ROUNDING < top_p
    return _with_the_likeliest(scores, may, sure)


def _mass_above(scores: F64, weights: F64, limits: F64, *, inclusive: bool) -> F64:
    """For each limit, the weight of all scores above it (or equal, where inclusive)."""
    order = np.argsort(-scores)
    sums = np.concatenate([[0.0], np.cumsum(weights[order])])
    return np.asarray(sums[np.searchsorted(-scores[order], -limits, side="right" if inclusive else "left")])


def _min_p(scores: Scores, min_p: float) -> Scores:
    """Kept where the probability is at least min_p of the likeliest's."""
    with np.errstate(divide="ignore"):
        floor = float(np.log(min_p))
    may = scores.high >= scores.low.max() + floor - PROCESSOR_ROUNDING
    sure = scores.low >= scores.high.max() + floor + PROCESSOR_ROUNDING
    return _with_the_likeliest(scores, may, sure)


def _with_the_likeliest(scores: Scores, may: NDArray[np.bool_], sure: NDArray[np.bool_]) -> Scores:
    """Whatever a cut says, it leaves the likeliest token: one of those that may be, and surely where only one may."""
    first = scores.high >= scores.low.max()
    return scores.only(may | first, sure | (first & (first.sum() == 1)))


class Spread:
    """The probabilities of scores, each between two numbers.

    total_low, total_high      of the sum that they are divided by, in units of the largest score's weight
    probs_low, probs_high      (S,) if kept
    entropy_low, entropy_high  in bits
    """

    def __init__(self, scores: Scores) -> None:
        self.scores = scores
        self.top = float(scores.high.max())
        below_low, below_high = self.top - scores.high, self.top - scores.low  # (S,) at least 0
        self.high_weights = np.exp(-below_low)
        floor_weights = np.exp(-below_high)
        self.low_weights = np.where(scores.sure, floor_weights, 0.0)
        self.total_low, self.total_high = float(self.low_weights.sum()), float(self.high_weights.sum())
        self._floor_weights, self._below = floor_weights, (below_low, below_high)

    @cached_property
    def probs_high(self) -> F64:
        rest = np.maximum(self.total_low - self.low_weights, 0.0)
        return np.asarray(self.high_weights / np.maximum(rest + self.high_weights, SMALLEST))

    @cached_property
    def probs_low(self) -> F64:
        rest = np.maximum(self.total_high - self.high_weights, 0.0)
        return np.asarray(self._floor_weights / np.maximum(rest + self._floor_weights, SMALLEST))

    @property
    def log_sum_exp(self) -> tuple[float, float]:
        with np.errstate(divide="ignore"):
            return self.top + float(np.log(self.total_low)), self.top + float(np.log(self.total_high))

    @property
    def entropy_bits(self) -> tuple[float, float]:
        """ln Z + sum(w d) / Z over the kept, d how far a score lies below the top: each part by its own ends."""
        terms = [_times(w, d) for w, d in ((self.high_weights, self._below[0]), (self._floor_weights, self._below[1]))]
        peak = (self._below[0] < 1) & (self._below[1] > 1)  # d exp(-d) is largest at 1
        most = float(np.where(peak, np.exp(-1.0), np.maximum(*terms)).sum())
        least = float(np.where(self.scores.sure, np.minimum(*terms), 0.0).sum())
        smallest = self.total_low or float(self._floor_weights.min())
        with np.errstate(divide="ignore"):
            low = max(0.0, float(np.log(smallest)) + least / self.total_high)
        high = float(np.log(self.total_high)) + (most / smallest if smallest else np.inf)
        return low / np.log(2), min(high, float(np.log(self.scores.ids.size))) / np.log(2)

    def prob_of(self, token_id: int) -> tuple[float, float]:
        """Least and largest probability of a token; 0 where it was cut."""
        place = self.scores.place(token_id)
        if place is None:
            return 0.0, 0.0
        return float(self.probs_low[place]) if self.scores.sure[place] else 0.0, float(self.probs_high[place])

    def interval_of(self, token_id: int) -> tuple[float, float, float, float]:
        """Of the token's part of [0, 1): least and largest beginning, least and largest end."""
        place = self.scores.place(token_id)
        if place is None:
            return np.nan, np.nan, np.nan, np.nan  # nothing lies there
        surely, possibly = self.scores.before(place)
        ahead_low, ahead_high = float(self.low_weights[surely].sum()), float(self.high_weights[possibly].sum())
        own_low, own_high = float(self._floor_weights[place]), float(self.high_weights[place])
        behind_low = self.total_low - float(self.low_weights[possibly].sum()) - float(self.low_weights[place])
        behind_high = self.total_high - float(self.high_weights[surely].sum()) - own_high
        return (
            _share(ahead_low, own_high + behind_high),
            _share(ahead_high, own_low + behind_low),
            _share(ahead_low + own_low, behind_high),
            _share(ahead_high + own_high, behind_low),
        )


def _share(part: float, rest: float) -> float:
    return part / (part + max(rest, 0.0)) if part > 0 else 0.0


def _times(weights: F64, below: F64) -> F64:
    """weights * below, where a weight of 0 adds 0 however far below."""
    return np.where(weights > 0, weights * np.where(weights > 0, below, 0.0), 0.0)


def removed(before: Spread, after: Scores) -> tuple[float, float]:
    """Least and largest probability, under `before`, of the tokens that `after` no longer has."""
    if after.ids.size == before.scores.ids.size and after.sure.all():
        return 0.0, 0.0
    places, _ = before.scores.places(after.ids)
    stays, surely_stays = (np.zeros(before.scores.ids.size, dtype=np.bool_) for _ in range(2))
    stays[places], surely_stays[places] = True, after.sure
    low = float(np.where(before.scores.sure & ~stays, before.probs_low, 0.0).sum())
    high = float(np.where(~surely_stays, before.probs_high, 0.0).sum())
    return min(low, 1.0), min(high, 1.0)
