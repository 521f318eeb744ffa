"""Make a model's steps on CPU as fast as its memory allows, without changing what it computes.

A decode step of a small model has to read every weight once; stock modules take about three times as long as
that. `speed_up` bundles projections that read the same input, gives every matrix the product kernel that is
fastest here, and replaces the small modules around them. Then it runs the model both ways, and takes
everything back unless the logits agree to within float32 rounding.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from engine.kernels.choice import KernelChoice, Shape, choose_kernels, was_made_in_a_busy_moment
from engine.kernels.fast_modules import FastLinear
from engine.kernels.install import refit, refitted, restore
from engine.kernels.joined_weights import Matrix, find_matrices
from engine.kernels.kept_choices import keep, recall

TOLERANCE = 1e-5  # largest difference of a logit, as a share of the largest logit
CHECK_TOKENS = 9  # prefilled for the check, then one token is decoded


@dataclass(frozen=True, slots=True)
class KernelReport:
    """What was done to a model, for display.

    applied     whether the fast forwards are in place; `reason` says why not
    choices     the kernel per shape of matrix and number of rows, with measured speeds
    replaced    (class name, how many) of the modules that got a fast forward
    bundles     matrices joined from two or three
    row_layers  decoder layers with a shorter way for one row
    difference  largest difference between a logit before and after, as a share of the largest logit; None: unchecked
    seconds     what all this took
    kept        the choices are those of an earlier start on this machine; False: made now, by timing
    """

    applied: bool
    reason: str
    choices: tuple[KernelChoice, ...] = ()
    replaced: tuple[tuple[str, int], ...] = ()
    bundles: int = 0
    row_layers: int = 0
    difference: float | None = None
    seconds: float = 0.0
    kept: bool = False


def speed_up(model: PreTrainedModel, *, threads: int, check: bool = True, memory: Path | None = None) -> KernelReport:
    """Speed up `model` in place, once, when it is loaded. A model that cannot be is left as it is.

    check   run it both ways and compare; the engine's own proof (models/proof.py) does that and more
    memory  folder where choices are kept between starts; None chooses anew and keeps nothing
    """
    started = time.perf_counter()
    if reason := _unfit(model):
        return KernelReport(False, reason)
    with torch.inference_mode(False), torch.no_grad():  # parameters must stay ordinary tensors
        before = _logits(model) if check else None
        matrices = find_matrices(model)
        by_shape = _by_shape(matrices)
        chosen, choices = recall(memory, by_shape, threads) if memory is not None else ({}, ())
        was_kept = bool(choices) and not was_made_in_a_busy_moment(by_shape, choices)
        if not was_kept:
            chosen, choices = choose_kernels(by_shape, threads)
        row_layers = refit(model, matrices, chosen, threads)
        difference = None if before is None else _difference(before, _logits(model))
    _give_back()
    if difference is not None and not difference <= TOLERANCE:  # this way round, a NaN does not pass
        restore(model)
        reason = f"logits differed by {difference:.1e} of the largest one"
        return KernelReport(False, reason, difference=difference, seconds=time.perf_counter() - started)
    if memory is not None and not was_kept:
        keep(memory, by_shape, threads, choices)
    bundles = sum(matrix.attribute != "product" for matrix in matrices)
    seconds = time.perf_counter() - started
    return KernelReport(True, "", choices, refitted(model), bundles, row_layers, difference, seconds, was_kept)


def _unfit(model: PreTrainedModel) -> str:
    """Why this model is left alone; empty where it is not."""
    if any(p.device.type != "cpu" or p.dtype != torch.float32 for p in model.parameters()):
        return "only for float32 on CPU"
    if any(isinstance(module, FastLinear) for module in model.modules()):
        return "already done"
    return "the model is in training mode" if model.training else ""


def _by_shape(matrices: Sequence[Matrix]) -> dict[Shape, list[Tensor]]:
    groups: dict[Shape, list[Tensor]] = {}
    for matrix in matrices:
        groups.setdefault(matrix.shape, []).append(matrix.weight)
    return groups


def _logits(model: PreTrainedModel) -> Tensor:
    """Logits of a short prefill and one decode step, fixed ids: (CHECK_TOKENS + 1, V)."""
    vocab = int(model.config.get_text_config().vocab_size)
    ids = (torch.arange(CHECK_TOKENS + 1) * 7919 + 11).remainder(vocab)[None]
    cache = DynamicCache()
    prefill = model(input_ids=ids[:, :-1], cache=cache, use_cache=True).logits
    decode = model(input_ids=ids[:, -1:], cache=cache, use_cache=True).logits
    return torch.cat([prefill, decode], 1)[0]


def _difference(before: Tensor, after: Tensor) -> float:
    return float((after - before).abs().max() / before.abs().max().clamp(min=1e-30))


def _give_back() -> None:
    """Return the memory of the weights as they lay before to the system; the C library would keep a part of it."""
    if sys.platform == "linux" and hasattr(library := ctypes.CDLL(None), "malloc_trim"):
        library.malloc_trim(0)
