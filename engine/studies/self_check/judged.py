"""What every judge of a record is given."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.config import ChosenToken
from engine.records import StepRecord
from engine.studies.self_check.scores import Scores, exact_scores, known_scores


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """A record, and what is known of its step from elsewhere.

    step     its place in the session, by counting
    context  the ids that its forward pass has read, by the recipe
    chosen   the token that the recipe goes on with, and the settings it was sampled under
    stock    (V,) the stock model's logits after the same ids
    ours     (V,) the engine's own logits, where they are still at hand
    slack    how far a logit of ours may lie from `stock`
    """

    record: StepRecord
    step: int
    context: tuple[int, ...]
    chosen: ChosenToken
    stock: NDArray[np.float32]
    ours: NDArray[np.float32] | None
    slack: float

    @property
    def name(self) -> str:
        return f"step {self.step}"

    def raw(self) -> Scores:
        """The step's logits as far as they are known."""
        if self.ours is not None:
            return exact_scores(self.ours)
        candidates = self.record.candidates
        return known_scores(self.stock.astype(np.float64), self.slack, candidates.ids, candidates.logits)

    def widened(self) -> Scores:
        """The stock model's logits, each within the slack: what any healthy forward pass may give."""
        row = self.stock.astype(np.float64)
        return known_scores(row, self.slack, np.empty(0, np.int64), np.empty(0))
