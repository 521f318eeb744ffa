"""From a loaded model to one that is shown: its kernels, its runner, and the proof that it computes what it should.

A proof is kept for the next start: of the same weights, by the same programs, on the same processor, it would come
out the same. Whatever differs, one byte of Loupe's own engine included, is proven anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch
import transformers
from transformers import PreTrainedModel

from engine.config import EngineConfig
from engine.errors import UnsupportedModel
from engine.forward.model_runner import ModelRunner
from engine.forward.scratch import Scratch
from engine.kept_files import keep, recall
from engine.kernels.install import restore
from engine.kernels.kept_choices import processor
from engine.kernels.speed_up import KernelReport, speed_up
from engine.models.loader import LoadedModel
from engine.models.model_folder import cache_root
from engine.models.proof import ask_stock, prove
from engine.models.stock import follow_weights, share_weights

PROGRAM = Path(__file__).resolve().parents[1]  # engine/


@dataclass(frozen=True, slots=True)
class TrustedModel:
    """A model that computes what transformers computes.

    stock      the same weights as transformers would run them
    kernels    None where none were tried
    may_share  whether sessions may share a forward pass
    """

    runner: ModelRunner
    stock: PreTrainedModel
    kernels: KernelReport | None
    may_share: bool


def trust(loaded: LoadedModel, config: EngineConfig, scratch: Scratch) -> TrustedModel:
    """Speed the model up and hold it against the stock model. Call it within torch.inference_mode.

    Raises UnsupportedModel where it computes something else, whatever its kernels.
    """
    model, stock = loaded.model, share_weights(loaded.model)
    proven = _recall(loaded, config)
    expected = None if proven else ask_stock(stock)
    kernels = _speed_up(loaded, config)
    follow_weights(stock, model)
    runner = ModelRunner(model, keep_queries=config.capture, scratch=scratch)
    if proven and proven.kernels == _names(kernels):
        return TrustedModel(runner, stock, kernels, proven.may_share)
    expected = expected or ask_stock(stock)
    try:
        may_share = prove(runner, stock, expected)
    except UnsupportedModel as error:
        if kernels is None or not kernels.applied:
            raise
        restore(model)  # our kernels may be what is wrong
        return TrustedModel(runner, stock, KernelReport(False, str(error)), prove(runner, stock, expected))
    _keep(loaded, config, Proven(may_share, _names(kernels)))
    return TrustedModel(runner, stock, kernels, may_share)


def _speed_up(loaded: LoadedModel, config: EngineConfig) -> KernelReport | None:
    if not config.fast_kernels or loaded.info.device != "cpu" or loaded.info.dtype != "float32":
        return None
    return speed_up(loaded.model, threads=torch.get_num_threads(), check=False, memory=cache_root() / "kernels")


@dataclass(frozen=True, slots=True)
class Proven:
    """What an earlier start found. `kernels` are the names of those that it ran with, in order."""

    may_share: bool
    kernels: tuple[str, ...]


def _names(kernels: KernelReport | None) -> tuple[str, ...]:
    return (
        () if kernels is None else tuple(f"{choice.shape} {choice.rows} {choice.kernel}" for choice in kernels.choices)
    )


def _recall(loaded: LoadedModel, config: EngineConfig) -> Proven | None:
    if not loaded.weights_mark:
        return None
    try:
        found = json.loads(recall(_folder(), _key(loaded, config)))
        return Proven(bool(found["may_share"]), tuple(found["kernels"]))
    except (ValueError, KeyError, TypeError):
        return None


def _keep(loaded: LoadedModel, config: EngineConfig, proven: Proven) -> None:
    if loaded.weights_mark:
        found = {"may_share": proven.may_share, "kernels": proven.kernels}
        keep(_folder(), _key(loaded, config), json.dumps(found, indent=1))


def _folder() -> Path:
    return cache_root() / "proofs"


def _key(loaded: LoadedModel, config: EngineConfig) -> Sequence[object]:
    """Everything that the outcome depends on."""
    info = loaded.info
    place = torch.cuda.get_device_name(info.device) if info.device != "cpu" else processor()
    return (
        *(torch.__version__, transformers.__version__, _program()),
        *(place, torch.backends.cpu.get_cpu_capability(), torch.get_num_threads()),
        *(loaded.weights_mark, info.dtype, config.fast_kernels, config.capture),
    )


@cache
def _program() -> str:
    """A mark of Loupe's engine as it lies on the disk."""
    mark = hashlib.sha256()
    for path in sorted(PROGRAM.rglob("*.py")):
        mark.update(path.read_bytes())
    return mark.hexdigest()
