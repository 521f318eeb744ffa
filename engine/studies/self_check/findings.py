"""One line of the self-check: how many numbers were compared, and which did not agree."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from engine.records import Check

ROUNDING = 1e-9  # of a float64 sum over a vocabulary
NAMED = 3  # how many of the numbers that differ are named


@dataclass(slots=True)
class Tally:
    """Numbers that must be equal to, or within bounds of, what was computed a second time."""

    name: str
    numbers: int = 0
    wrong: list[str] = field(default_factory=list)

    def same(self, what: str, got: object, expected: object) -> None:
        """Count one number, or one value, that must be exactly what is expected."""
        self.numbers += 1
        if type(got) is bool or type(expected) is bool:
            agrees = type(got) is type(expected) and got == expected
        else:
            agrees = got == expected
        if not agrees:
            self.wrong.append(f"{what} is {_short(got)}, not {_short(expected)}")

    def within(self, what: str, got: float | None, low: float, high: float) -> None:
        """Count one number that must lie from low to high. NaN and None lie nowhere."""
        self.numbers += 1
        if got is None or not low - ROUNDING * (1 + abs(low)) <= got <= high + ROUNDING * (1 + abs(high)):
            self.wrong.append(f"{what} is {got}, not from {low:.9g} to {high:.9g}")

    def all_same(self, what: str, got: NDArray[np.generic], expected: NDArray[np.generic]) -> None:
        """Count arrays that must be equal number by number."""
        self.numbers += expected.size
        if got.shape != expected.shape:
            self.wrong.append(f"{what} has the shape {got.shape}, not {expected.shape}")
            return
        for place in np.flatnonzero((got != expected).ravel()):
            self.wrong.append(f"{what}[{place}] is {got.ravel()[place]}, not {expected.ravel()[place]}")

    def all_within(
        self, what: str, got: NDArray[np.floating], low: NDArray[np.floating], high: NDArray[np.floating]
    ) -> None:
        """Count arrays that must lie within bounds number by number."""
        self.numbers += low.size
        if got.shape != low.shape:
            self.wrong.append(f"{what} has the shape {got.shape}, not {low.shape}")
            return
        inside = (got >= low - ROUNDING * (1 + np.abs(low))) & (got <= high + ROUNDING * (1 + np.abs(high)))
        for place in np.flatnonzero(~inside):
            self.wrong.append(f"{what}[{place}] is {got[place]}, not from {low[place]:.9g} to {high[place]:.9g}")

    def check(self, how: str) -> Check:
        """The line for the page."""
        compared = f"{self.numbers:,} numbers: {how}{_named(self.wrong)}"
        return Check(self.name, compared, not self.wrong, float(len(self.wrong)), 0.0, "differing numbers")


@dataclass(slots=True)
class Distance:
    """Numbers that two forward passes may round differently: the largest difference, and what is allowed there."""

    name: str
    unit: str
    numbers: int = 0
    difference: float = 0.0
    tolerance: float = 0.0
    ratio: float = -1.0
    wrong: list[str] = field(default_factory=list)

    def add(
        self,
        what: str,
        ours: NDArray[np.floating],
        theirs: NDArray[np.floating],
        allowed: NDArray[np.floating] | float,
    ) -> None:
        """Compare two arrays. Kept is the difference that uses up most of what is allowed."""
        if ours.shape != theirs.shape:
            self._keep(f"{what} has the shape {ours.shape}, not {theirs.shape}", np.inf, 0.0)
            return
        self.numbers += ours.size
        if not ours.size:
            return
        both_cut = np.isneginf(ours) & np.isneginf(theirs)
        apart = np.where(both_cut, 0.0, np.abs(np.where(both_cut, 0.0, ours) - np.where(both_cut, 0.0, theirs)))
        apart = np.where(np.isnan(apart), np.inf, apart)
        limit = np.broadcast_to(np.asarray(allowed, dtype=np.float64), apart.shape)
        worst = np.unravel_index(int((apart / limit).argmax()), apart.shape)
        self._keep(what, float(apart[worst]), float(limit[worst]))

    def _keep(self, what: str, difference: float, tolerance: float) -> None:
        ratio = difference / tolerance if tolerance else float("inf")
        if ratio > self.ratio:
            self.difference, self.tolerance, self.ratio = difference, tolerance, ratio
        if ratio > 1:
            self.wrong.append(what)

    def check(self, how: str) -> Check:
        """The line for the page."""
        compared = f"{self.numbers:,} numbers: {how}{_named(self.wrong)}"
        return Check(self.name, compared, not self.wrong, self.difference, self.tolerance, self.unit)


def _short(value: object) -> str:
    """A value for a sentence: a whole prompt is cut."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _named(wrong: list[str]) -> str:
    if not wrong:
        return ""
    more = f", and {len(wrong) - NAMED:,} more" if len(wrong) > NAMED else ""
    return ". Differs: " + "; ".join(wrong[:NAMED]) + more
