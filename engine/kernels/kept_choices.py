"""Kernels that were chosen on this machine before, kept so that another start of the same model gives the same bits.

The choice is made by timing, so a second one can come out otherwise, and another kernel adds in another order. Kept
is what was chosen for one set of shapes, with so many threads, by this PyTorch on this processor: anything else is
chosen anew. So is what turns out to have been chosen in a busy moment (`choice.was_made_in_a_busy_moment`), and
deleting the folder chooses anew too.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from engine import kept_files
from engine.kernels.choice import KernelChoice, Shape
from engine.kernels.linear import METHODS, ROW_STEPS, Method

Chosen = dict[Shape, dict[int, Method]]


def recall(folder: Path, weights: dict[Shape, list[Tensor]], threads: int) -> tuple[Chosen, tuple[KernelChoice, ...]]:
    """What was chosen for these matrices; empty where nothing was, or it cannot be done any more."""
    try:
        table = [_choice(entry) for entry in json.loads(kept_files.recall(folder, _key(weights, threads)))]
    except (ValueError, TypeError, KeyError):
        return {}, ()
    by_name = {method.name: method for method in METHODS}
    chosen: Chosen = {shape: {} for shape in weights}
    for choice in table:
        method = by_name.get(choice.kernel)
        if method is None or choice.shape not in weights or choice.rows not in method.rows:
            return {}, ()
        if any(method.build(weight, None, threads) is None for weight in weights[choice.shape][:1]):
            return {}, ()
        chosen[choice.shape][choice.rows] = method
    whole = all(set(by_rows) == set(ROW_STEPS) for by_rows in chosen.values())
    return (chosen, tuple(table)) if whole else ({}, ())


def keep(folder: Path, weights: dict[Shape, list[Tensor]], threads: int, table: Sequence[KernelChoice]) -> None:
    """Remember a choice. A folder that cannot be written costs a new choice at the next start, and nothing else."""
    text = json.dumps(
        [[*c.shape, c.count, c.rows, c.kernel, c.gb_per_s, c.stock_gb_per_s] for c in table], separators=(",", ":")
    )
    kept_files.keep(folder, _key(weights, threads), text)


def _key(weights: dict[Shape, list[Tensor]], threads: int) -> Sequence[object]:
    """Each thing a choice depends on."""
    return (
        torch.__version__,
        torch.backends.cpu.get_cpu_capability(),
        processor(),
        threads,
        [method.name for method in METHODS],
        sorted((shape, len(matrices)) for shape, matrices in weights.items()),
    )


def processor() -> str:
    """Its name as the system gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _choice(entry: Sequence[object]) -> KernelChoice:
    out, width, count, rows, kernel, speed, stock_speed = entry
    return KernelChoice(
        (_whole(out), _whole(width)), _whole(count), _whole(rows), str(kernel), _real(speed), _real(stock_speed)
    )


def _whole(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(f"not a whole number: {value!r}")
    return value


def _real(value: object) -> float:
    if not isinstance(value, (int, float)):
        raise TypeError(f"not a number: {value!r}")
    return float(value)
