"""Which kernel is fastest here, for each shape of matrix and each number of rows: measured when a model is loaded.

Weights are read in turn over all shapes, so that each pass has to come from memory as in a real step; a
matrix timed alone would sit in the cache and flatter every kernel.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.kernels.linear import METHODS, ROW_STEPS, Kernel, Method

SAMPLE_BYTES = 16 << 20  # per shape; all shapes together exceed a processor's cache
SLICE_BYTES = 32 << 20  # of one very large matrix (a vocabulary head), its first rows
MIN_ROUNDS, MAX_ROUNDS = 3, 6
PATIENCE_S = 0.6  # no more than MIN_ROUNDS after this long
BUSY_S = 2.0  # and no further round at all after this: the machine has other things to do
HOPELESS = 3.0  # a kernel this many times slower than the best after two rounds is not timed again
WORTH_IT = 0.95  # a kernel replaces the preferred one only when it takes less than this share of its time
BUSY_THEN = 1.5  # times as fast as when a choice was made: that moment was a busy one
LOOKS = 3  # times that is looked at, each a few hundredths of a second
TOLERANCE = 1e-5  # of the largest output; sums in another order differ by less

Shape = tuple[int, int]  # (O, K)


@dataclass(frozen=True, slots=True)
class KernelChoice:
    """The kernel for one shape of matrix and up to `rows` rows, with what was measured.

    shape     (out, in)
    count     matrices of that shape in the model
    gb_per_s  weights' bytes over the best time of the chosen kernel; stock_gb_per_s the same for F.linear
    """

    shape: Shape
    count: int
    rows: int
    kernel: str
    gb_per_s: float
    stock_gb_per_s: float


@dataclass(slots=True)
class _Trial:
    """One method on the sample of one shape."""

    method: Method
    kernels: list[Kernel]
    best: float = float("inf")


@dataclass(slots=True)
class _Contest:
    """All methods for one shape at one number of rows."""

    x: Tensor
    trials: list[_Trial] = field(default_factory=list)

    def best(self) -> float:
        return min(trial.best for trial in self.trials)

    def time(self, method: Method, limit: float) -> None:
        """Let `method` run once over the sample, unless it was slower than `limit` times the best so far."""
        for trial in self.trials:
            if trial.method is method and trial.best <= limit * self.best():
                trial.best = min(trial.best, _seconds(trial.kernels, self.x))

    def winner(self) -> _Trial:
        """The fastest, unless an earlier one in METHODS is as good as equal."""
        limit = self.best() / WORTH_IT
        return next(trial for trial in self.trials if trial.best <= limit)


def choose_kernels(
    weights: dict[Shape, list[Tensor]], threads: int
) -> tuple[dict[Shape, dict[int, Method]], tuple[KernelChoice, ...]]:
    """For every shape: row step -> method, and the table of what was measured."""
    samples = {shape: _sample(matrices) for shape, matrices in weights.items()}
    contests = {
        (rows, shape): _enter(weights[shape][0], samples[shape], rows, threads)
        for rows in ROW_STEPS
        for shape in weights
    }
    _run(list(contests.values()))
    chosen: dict[Shape, dict[int, Method]] = {shape: {} for shape in weights}
    table: list[KernelChoice] = []
    for (rows, shape), contest in contests.items():
        winner = contest.winner()
        chosen[shape][rows] = winner.method
        size = sum(w.numel() * w.element_size() for w in samples[shape]) / 1e9
        speed, stock_speed = size / winner.best, size / contest.trials[0].best
        table.append(KernelChoice(shape, len(weights[shape]), rows, winner.method.name, speed, stock_speed))
    return chosen, tuple(table)


def was_made_in_a_busy_moment(weights: dict[Shape, list[Tensor]], table: Sequence[KernelChoice]) -> bool:
    """Whether F.linear multiplies one row so much faster now than when `table` was made that another choice is due.

    Matrices that a processor's cache holds are timed too roughly to say so.
    """
    kept = {choice.shape: choice.stock_gb_per_s * 1e9 for choice in table if choice.rows == 1}
    samples = {shape: _sample(matrices) for shape, matrices in weights.items()}
    sizes = {shape: sum(w.numel() * w.element_size() for w in sample) for shape, sample in samples.items()}
    if sum(sizes.values()) < SAMPLE_BYTES:
        return False
    runs = [
        ([kernel for w in sample if (kernel := METHODS[0].build(w, None, 1))], _row_values(1, shape[1]))
        for shape, sample in samples.items()
    ]
    now = min(sum(_seconds(kernels, x) for kernels, x in runs) for _ in range(LOOKS))
    return sum(size / kept[shape] for shape, size in sizes.items()) > BUSY_THEN * now


def _sample(matrices: Sequence[Tensor]) -> list[Tensor]:
    """Enough matrices of one shape to time, the very large ones cut to a multiple of 64 of their rows."""
    row_bytes = matrices[0].shape[1] * matrices[0].element_size()
    most = max(64, SLICE_BYTES // row_bytes // 64 * 64)
    each = min(most, matrices[0].shape[0]) * row_bytes
    count = max(1, SAMPLE_BYTES // each)
    return [w[:most] for w in matrices[:count]]


def _enter(whole: Tensor, sample: Sequence[Tensor], rows: int, threads: int) -> _Contest:
    """Every method that can do this shape and does it right; each has run once, so that it is warm."""
    contest = _Contest(_row_values(rows, whole.shape[1]))
    right = F.linear(contest.x, sample[0])
    allowed = TOLERANCE * float(right.abs().max().clamp(min=1e-30))
    for method in METHODS:
        if rows not in method.rows or method.build(whole, None, threads) is None:
            continue
        kernels = [k for w in sample if (k := method.build(w, None, threads)) is not None]
        if len(kernels) == len(sample) and float((kernels[0](contest.x) - right).abs().max()) <= allowed:
            contest.trials.append(_Trial(method, kernels))
    return contest


def _row_values(rows: int, width: int) -> Tensor:
    """(rows, width) numbers between -1 and 1, the same every time."""
    return torch.sin(torch.arange(rows * width, dtype=torch.float32)).view(rows, width)


def _run(contests: Sequence[_Contest]) -> None:
    """Time all methods in turn, so that a busy moment of the machine hits them alike."""
    started = time.perf_counter()
    for finished in range(MAX_ROUNDS):
        for method in METHODS:
            for contest in contests:
                contest.time(method, HOPELESS if finished >= 2 else float("inf"))
        elapsed = time.perf_counter() - started
        if elapsed > (PATIENCE_S if finished + 1 >= MIN_ROUNDS else BUSY_S):
            return


def _seconds(kernels: Sequence[Kernel], x: Tensor) -> float:
    started = time.perf_counter()
    for kernel in kernels:
        kernel(x)
    return time.perf_counter() - started
