"""What a check of a claim on the loaded model found: measured numbers, and whether the claim held."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reading:
    """One measured number: what it is, and its unit ("" for a count or a ratio)."""

    what: str
    value: float
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """How a check came out.

    holds     whether the claim held here
    verdict   in a sentence
    readings  what was measured
    measured  on which model, in which format, where, and when
    """

    holds: bool
    verdict: str
    readings: tuple[Reading, ...]
    measured: str = ""
