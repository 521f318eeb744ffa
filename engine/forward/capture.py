"""What is kept of recent steps so that looking at them is instant: queries and full logits, within a byte budget.

Of the newest step also its attention, where the session is watched: whoever shows a step wants it at once.

Losing a capture loses nothing: the step is replayed against the cache when somebody looks at it.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from engine.forward.forward_pass import LayerQuery


@dataclass(frozen=True, slots=True)
class Capture:
    """One step's last-row logits (V,) float32 on CPU, its query in every layer, and its attention (L, H, K) if kept."""

    logits: Tensor
    queries: dict[int, LayerQuery]
    attention: NDArray[np.float32] | None = None

    @property
    def num_bytes(self) -> int:
        logits = self.logits.numel() * self.logits.element_size()
        rows = 0 if self.attention is None else self.attention.nbytes
        return logits + rows + sum(q.num_bytes for q in self.queries.values())


class CaptureRing:
    """The captures of the latest steps, oldest dropped first when over `budget` bytes; the latest always stays."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._captures: OrderedDict[int, Capture] = OrderedDict()
        self._sizes: dict[int, int] = {}  # adding up what thirty layers keep takes time
        self.num_bytes = 0

    def put(self, step: int, capture: Capture) -> None:
        """Keep `capture` as the latest step's; the step before keeps its query, and not its attention."""
        self.truncate(step)
        if self._captures:
            self._forget_attention(next(reversed(self._captures)))
        self._captures[step] = capture
        self._sizes[step] = capture.num_bytes
        self.num_bytes += self._sizes[step]
        while self.num_bytes > self.budget and len(self._captures) > 1:
            self._drop(next(iter(self._captures)))

    def get(self, step: int) -> Capture | None:
        """The capture of a step, or None where it has been dropped. May be asked by any thread."""
        return self._captures.get(step)

    def truncate(self, steps: int) -> None:
        """Forget captures of steps from number `steps` on."""
        for step in [s for s in self._captures if s >= steps]:
            self._drop(step)

    def clear(self) -> None:
        """Forget everything."""
        self.truncate(0)

    def _forget_attention(self, step: int) -> None:
        known = self._captures[step]
        if known.attention is not None:
            self._captures[step] = replace(known, attention=None)
            self._sizes[step] -= known.attention.nbytes
            self.num_bytes -= known.attention.nbytes

    def _drop(self, step: int) -> None:
        del self._captures[step]
        self.num_bytes -= self._sizes.pop(step)
