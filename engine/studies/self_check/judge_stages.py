"""Every stage of a record: names, kept tokens, probabilities, entropy, removed mass."""

from __future__ import annotations

import numpy as np

from engine.records import SHOWN, Stage
from engine.studies.self_check.findings import Tally
from engine.studies.self_check.judged import Judged
from engine.studies.self_check.scores import Scores, Spread, removed

TOP = 16  # likeliest tokens named at every stage

Staged = list[tuple[str, str, Scores]]


def judge_stages(tally: Tally, judged: Judged, stages: Staged, spreads: list[Spread]) -> None:
    """The record's stages against the same stages worked out here."""
    got = judged.record.stages
    tally.same(f"{judged.name} stages", tuple(stage.name for stage in got), tuple(name for name, _, _ in stages))
    before = spreads[0]
    for stage, (name, setting, _), spread in zip(got, stages, spreads, strict=False):
        where = f"{judged.name} {name}"
        tally.same(f"{where} is labelled with its setting {setting}", setting in stage.label, True)
        tally.within(f"{where} removed mass", stage.removed_mass, *removed(before, spread.scores))
        _judge_stage(tally, where, judged, stage, spread)
        before = spread


def _judge_stage(tally: Tally, where: str, judged: Judged, stage: Stage, spread: Spread) -> None:
    scores = spread.scores
    tally.within(
        f"{where} kept", stage.kept, max(1, int(scores.sure.sum())), scores.ids.size if stage.name != "greedy" else 1
    )
    tally.within(f"{where} entropy", stage.entropy_bits, *(spread.entropy_bits if stage.kept > 1 else (0.0, 0.0)))
    shown = judged.record.candidates.ids[:SHOWN]
    low, high = _bounds(spread, shown)
    got_cut = stage.probs == 0  # a token at the edge of a cut is either gone or has its share
    tally.all_within(f"{where} probability", stage.probs, np.where(got_cut, _sure(spread, shown, low), low), high)
    _judge_top(tally, where, stage, spread)
    known = dict(zip(shown.tolist(), stage.probs.tolist(), strict=True))
    for token, prob in zip(stage.top_ids.tolist(), stage.top_probs.tolist(), strict=False):
        tally.same(f"{where} probability of {token}, shown twice", prob, known.get(token, prob))


def _bounds(spread: Spread, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Least and largest probability of tokens, if kept; 0 where cut."""
    places, there = spread.scores.places(ids)
    return np.where(there, spread.probs_low[places], 0.0), np.where(there, spread.probs_high[places], 0.0)


def _sure(spread: Spread, ids: np.ndarray, low: np.ndarray) -> np.ndarray:
    """The least probability with the chance of being cut: 0 for a token that may be."""
    places, there = spread.scores.places(ids)
    return np.where(there & spread.scores.sure[places], low, 0.0)


def _judge_top(tally: Tally, where: str, stage: Stage, spread: Spread) -> None:
    """The likeliest tokens: as many as there should be, in order, none left out, with their probabilities."""
    scores, ids = spread.scores, stage.top_ids
    count = min(TOP, stage.kept)
    tally.same(f"{where} number of likeliest tokens", (ids.size, stage.top_probs.size), (count, count))
    if not ids.size or ids.size != stage.top_probs.size:
        return
    places, there = scores.places(ids)
    tally.all_same(f"{where} likeliest token was kept", there, np.ones(ids.size, dtype=np.bool_))
    tally.all_within(f"{where} likeliest probability", stage.top_probs, *_bounds(spread, ids))
    low, high = scores.low[places], scores.high[places]
    exact = (low[:-1] == high[:-1]) & (low[1:] == high[1:])
    in_order = np.where(
        exact,
        (low[:-1] > low[1:]) | ((low[:-1] == low[1:]) & (ids[:-1] < ids[1:])),
        high[:-1] >= low[1:],
    )
    tally.all_same(f"{where} likeliest tokens fall in order", in_order, np.ones(max(0, ids.size - 1), dtype=np.bool_))
    left_out = scores.sure & ~np.isin(scores.ids, ids)
    largest = float(scores.low[left_out].max(initial=-np.inf))
    tally.within(f"{where} largest score not named", largest, -np.inf, float(high.min()))
