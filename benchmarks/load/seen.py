"""What a class saw: every answer, what was lost, what went wrong. Filled by the students, read by the report."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

EXPECTED = frozenset({"SessionFinished"})  # a press that was under way when a stop rule fired


@dataclass(frozen=True, slots=True)
class Drawn:
    """One step that a press led to. Milliseconds; `at` in seconds.

    click_ms   from the press to the frame's arrival; of autoplay from the step before
    engine_ms  of that, what the record says: waiting, forward, sampling, and their sum with the rest
    autoplay   whether the player asked, not a person
    """

    at: float
    click_ms: float
    wait_ms: float
    forward_ms: float
    sample_ms: float
    engine_ms: float
    batch_size: int
    autoplay: bool


@dataclass(slots=True)
class Seen:
    """Counts of one run.

    opened_s   from connecting to a session, one number per page
    first_s    from pressing Prefill to the first token
    lost       steps whose press was answered and that are in no history
    doubled    steps in a history beyond what was pressed
    unanswered   presses without an answer long after the end: too slow, or lost
    refused    presses that came after the run had ended
    """

    drawn: list[Drawn] = field(default_factory=list)
    opened_s: list[float] = field(default_factory=list)
    first_s: list[float] = field(default_factory=list)
    pressed: int = 0
    lost: int = 0
    doubled: int = 0
    unanswered: int = 0
    refused: int = 0
    reloads: int = 0
    vanished: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    sessions: set[str] = field(default_factory=set)
    kv_bytes: dict[str, int] = field(default_factory=dict)
    frame_bytes: list[int] = field(default_factory=list)
    received_bytes: int = 0

    def error(self, kind: str, message: str = "") -> None:
        """Count something that went wrong, under its name and the beginning of its message."""
        self.errors[f"{kind}: {message[:120]}" if message else kind] += 1

    def step(self, at: float, click_ms: float, step: Mapping[str, Any], *, autoplay: bool) -> None:
        """Count one step by the record it led to."""
        timing = step["timing_ms"] or {}
        self.drawn.append(
            Drawn(
                at=at,
                click_ms=click_ms,
                wait_ms=timing.get("wait") or 0.0,
                forward_ms=timing.get("forward") or 0.0,
                sample_ms=timing.get("sample") or 0.0,
                engine_ms=timing.get("total") or 0.0,
                batch_size=step["batch_size"],
                autoplay=autoplay,
            )
        )


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of all do not exceed; 0 where there is none."""
    if not values:
        return 0.0
    ranked = sorted(values)
    return ranked[max(0, math.ceil(share * len(ranked)) - 1)]
