"""The stages of sampling: transformers' logits processors, in the order `generate` uses them.

Each stage is written for the tokens that are still in play and keeps the same ones as the processor of its name, to
the last bit of their scores (tests/engine/decode/test_stages.py holds them against each other). What takes the
processors long is left out: sorting a vocabulary of which fifty tokens are left, copying rows of -inf. What decides
a cut is computed as they do, in float32, by the same sums over the same rows. One case has no answer but theirs,
where top-p cuts between equal scores: it goes by the order of their sort, so they are asked.

A neutral setting has no stage. At temperature 0 only the penalty acts, then the likeliest token is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers.generation.logits_process import TopPLogitsWarper

from engine.config import SamplingParams
from engine.decode.buffers import empty
from engine.decode.distribution import Distribution, distribution, kept_at
from engine.decode.ranking import rank_again
from engine.decode.sums import sums_moved

FLOAT32 = np.finfo(np.float32)
SETTINGS = 256  # whose rules are remembered

# What came before, and the context's ids, once each -> what comes after.
Act = Callable[[Distribution, NDArray[np.int64]], Distribution]


class Rule(NamedTuple):
    """One stage: its name, its name with its setting, and what it does."""

    name: str
    label: str
    act: Act


class Spread(NamedTuple):
    """One stage's distribution."""

    name: str
    label: str
    after: Distribution


@lru_cache(maxsize=SETTINGS)
def rules_of(params: SamplingParams) -> tuple[Rule, ...]:
    """The active stages in order."""
    found: list[Rule] = []
    if params.repetition_penalty != 1:
        label = f"repetition penalty {_short(params.repetition_penalty)}"
        found.append(Rule("repetition_penalty", label, partial(_penalise, penalty_of(params))))
    if params.is_greedy:
        return (*found, Rule("greedy", "temperature 0: greedy", _take_likeliest))
    if params.temperature != 1:
        label = f"temperature {_short(params.temperature)}"
        found.append(Rule("temperature", label, partial(_rescale, _float32(params.temperature))))
    if params.top_k > 0:
        found.append(Rule("top_k", f"top-k {params.top_k}", partial(_cut_to_k, params.top_k)))
    if params.top_p < 1:
        found.append(Rule("top_p", f"top-p {_short(params.top_p)}", partial(_cut_to_p, float(params.top_p))))
    if params.min_p > 0:
        found.append(Rule("min_p", f"min-p {_short(params.min_p)}", partial(_cut_below_p, float(params.min_p))))
    return tuple(found)


def penalty_of(params: SamplingParams) -> np.float32:
    """What the repetition penalty multiplies and divides by."""
    return _float32(params.repetition_penalty)


def penalised(scores: NDArray[np.float32], penalty: np.float32) -> NDArray[np.float32]:
    """Scores of tokens seen before, as the repetition penalty leaves them: within float32's range."""
    with np.errstate(over="ignore", under="ignore"):
        return np.where(scores < 0, scores * penalty, scores / penalty).clip(FLOAT32.min, FLOAT32.max)


def _penalise(penalty: np.float32, before: Distribution, context: NDArray[np.int64]) -> Distribution:
    places, held = before.places_of(context)
    places = places if held is None else places[held]
    scores = empty(before.kept)
    np.copyto(scores, before.scores)
    old, new = before.scores[places], penalised(before.scores[places], penalty)
    scores[places] = new
    pool = np.concatenate((before.ranking.order, places))  # all others are where they were
    ranking = rank_again(scores, pool, before.ranking.floor)
    sums = None
    if ranking.order.size:
        sums = sums_moved(before.sums, (float(before.top), float(scores[ranking.order[0]])), old, new)
    return distribution(scores, size=before.size, ids=before.ids, ranking=ranking, sums=sums)


def _rescale(temperature: np.float32, before: Distribution, context: NDArray[np.int64]) -> Distribution:
    """Leaving float32's range must neither cut nor tie tokens."""
    scores, floor = before.scores, before.ranking.floor
    if abs(float(before.top)) > float(FLOAT32.max) * float(temperature):
        scores, floor = scores - before.top, floor - before.top  # softmax does not see a shift, and 0 stays in range
    with np.errstate(over="ignore", under="ignore"):
        scores = np.divide(scores, temperature, out=empty(before.kept))
        floor = floor / temperature
    if not (np.isfinite(scores.min()) and np.isfinite(scores.max())):
        scores = scores.clip(FLOAT32.min, FLOAT32.max)
        floor = max(FLOAT32.min, min(floor, FLOAT32.max))
    ranking = rank_again(scores, before.ranking.order, floor)  # rounding may have made two scores equal
    return distribution(scores, size=before.size, ids=before.ids, ranking=ranking)


def _cut_to_k(top_k: int, before: Distribution, context: NDArray[np.int64]) -> Distribution:
    """Keeps all that tie with the k-th."""
    if top_k >= before.kept:
        return before
    order = before.ranking.order
    if top_k < order.size:
        kth = before.scores[order[top_k - 1]]
        return kept_at(before, np.sort(order[before.scores[order] >= kth]))
    kth = np.partition(before.scores, before.kept - top_k)[before.kept - top_k]
    return kept_at(before, np.flatnonzero(before.scores >= kth))


def _cut_to_p(top_p: float, before: Distribution, context: NDArray[np.int64]) -> Distribution:
    """Keeps the fewest likeliest that together reach `top_p`, and always one."""
    rising = before.in_order()  # (S,)
    row = empty(before.size)  # (V,) what transformers would sort
    row[: before.size - before.kept] = -np.inf
    row[before.size - before.kept :] = rising
    probs = torch.from_numpy(row)[None].softmax(-1)[:, before.size - before.kept :]  # (1, S) float32
    mass: NDArray[np.float32] = probs.cumsum(-1)[0].numpy()  # (S,)
    # Counted by numpy: so long a row wakes torch's threads, which on a busy machine takes longer than the whole step.
    cut = min(int(np.count_nonzero(mass <= np.float32(1 - top_p))), before.kept - 1)
    if cut and rising[cut - 1] == rising[cut]:
        whole = torch.from_numpy(before.row())[None]
        after: Tensor = TopPLogitsWarper(top_p)(torch.empty(1, 0, dtype=torch.long), whole)
        return kept_at(before, before.places_of(np.flatnonzero(after[0].numpy() > -np.inf))[0])
    return kept_at(before, np.flatnonzero(before.scores >= rising[cut]))


def _cut_below_p(min_p: float, before: Distribution, context: NDArray[np.int64]) -> Distribution:
    """Keeps what has at least `min_p` times the probability of the likeliest."""
    probs: NDArray[np.float32] = torch.from_numpy(before.row())[None].softmax(-1)[0].numpy()
    probs = probs if before.ids is None else probs[before.ids]
    return kept_at(before, np.flatnonzero(~(probs < np.float32(min_p) * probs.max())))


def _take_likeliest(before: Distribution, context: NDArray[np.int64]) -> Distribution:
    """Leaves one token alone and cuts all others; the lowest id wins a tie."""
    return kept_at(before, before.ranking.order[:1])


def _float32(value: float) -> np.float32:
    """The processors take true floats only, and those must not round to 0 in float32."""
    return np.float32(min(max(float(value), float(FLOAT32.tiny)), float(FLOAT32.max)))


def _short(value: float) -> str:
    return f"{value:.6g}"
