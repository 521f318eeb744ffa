"""What is kept of recent steps so that looking at them is instant: queries and full logits, within a byte budget.

Losing a capture loses nothing: the step is replayed against the cache when somebody looks at it.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from torch import Tensor

from engine.forward.forward_pass import LayerQuery


@dataclass(frozen=True, slots=True)
class Capture:
    """One step's last-row logits (V,) float32 on CPU, and its query in every layer."""

    logits: Tensor
    queries: dict[int, LayerQuery]

    @property
    def num_bytes(self) -> int:
        logits = self.logits.numel() * self.logits.element_size()
        return logits + sum(q.num_bytes for q in self.queries.values())


class CaptureRing:
    """The captures of the latest steps, oldest dropped first when over `budget` bytes; the latest always stays."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._captures: OrderedDict[int, Capture] = OrderedDict()
        self.num_bytes = 0

    def put(self, step: int, capture: Capture) -> None:
        """Keep `capture` as the latest step's."""
        self.truncate(step)
        self._captures[step] = capture
        self.num_bytes += capture.num_bytes
        while self.num_bytes > self.budget and len(self._captures) > 1:
            self._drop(next(iter(self._captures)))

    def get(self, step: int) -> Capture | None:
        """The capture of a step, or None where it has been dropped."""
        return self._captures.get(step)

    def truncate(self, steps: int) -> None:
        """Forget captures of steps from number `steps` on."""
        for step in [s for s in self._captures if s >= steps]:
            self._drop(step)

    def clear(self) -> None:
        """Forget everything."""
        self.truncate(0)

    def _drop(self, step: int) -> None:
        self.num_bytes -= self._captures.pop(step).num_bytes
