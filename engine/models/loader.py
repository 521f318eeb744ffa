"""Load a model whole, or say why not.

transformers loads a folder with missing tensors without an error, filling them with random numbers, and
keeps CPU weights in the mapped file, at addresses that make every forward several times slower. Both are
put right here, so that later files can trust what they are given.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import torch
from safetensors import SafetensorError
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from transformers import (
    AutoModelForCausalLM,
    PreTrainedConfig,
    PreTrainedModel,
)

from engine.config import EngineConfig
from engine.errors import CorruptModel
from engine.facts import ModelInfo
from engine.models.architecture import check_sizes, read_config
from engine.models.early_weights import EarlyTensor, EarlyWeights
from engine.models.fit import check_fits
from engine.models.info import describe
from engine.models.load_errors import in_short, in_words
from engine.models.model_folder import files_mark, forget
from engine.models.placement import device_for, dtype_for, free_on, memory_of
from engine.models.safetensors_files import held_bytes, read_headers
from engine.models.source import Source, locate
from engine.models.tokenizer_files import read_tokenizer
from engine.models.transformers_output import quiet_transformers
from engine.progress import OnLoading
from engine.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class LoadedModel:
    """A model ready to run, its tokenizer, and its numbers.

    weights_mark  the same for the same files of weights and config; empty where the model came from none
    """

    info: ModelInfo
    model: PreTrainedModel
    tokenizer: Tokenizer
    weights_mark: str = ""


def load_model(
    config: EngineConfig, progress: OnLoading | None = None, early: EarlyWeights | None = None
) -> LoadedModel:
    """The model `config` names: in eval mode, on its device, its parameters not asking for gradients.

    early  its weights, where somebody began to read them before
    """
    report = progress or (lambda text, done: None)
    use_threads(config.threads)
    with in_words(config.model):
        find = partial(
            locate, config.model, report, device=config.device, dtype=config.dtype, hub_token=config.hub_token
        )
        source = find()
        try:
            return _load(source, config, report, early)
        except CorruptModel:
            if not source.imported:
                raise
            forget(source.folder)  # our own copy has been damaged: make it again, once
            report("The imported copy is damaged; importing again", 0.0)
            return _load(find(), config, report, None)


def use_threads(wanted: int) -> None:
    """Set how many CPU threads one forward uses. More than there are cores makes it slower, not faster."""
    cores = psutil.cpu_count(logical=False) or os.cpu_count() or 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else cores
    torch.set_num_threads(wanted or max(1, min(cores, allowed)))
    if torch.get_num_interop_threads() != 1:
        try:
            torch.set_num_interop_threads(1)
        except RuntimeError:  # fixed once anything has run in parallel; a decoder has nothing to run side by side
            return


def _load(source: Source, config: EngineConfig, progress: OnLoading, early: EarlyWeights | None) -> LoadedModel:
    if early is None or early.folder != source.folder:
        early = EarlyWeights(source.folder, read=False)
    device = device_for(config.device)
    model_config = read_config(source.folder, source.name)
    dtype = dtype_for(config.dtype, device, model_config.get_text_config().dtype or model_config.dtype)
    weights = read_headers(source.folder)
    check_sizes(source.folder, model_config, weights)
    read = early.tensors()
    held = sum(4 * tensor.stored.values for tensor in read.values())
    check_fits(source.name, held_bytes(weights, dtype.itemsize), free_on(device) + held, memory_of(device))
    progress(f"Loading {source.name}", 0.95)
    stock, notes = read_tokenizer(source.folder, source.name)
    tokenizer = Tokenizer(stock)
    model = _weights(source, model_config, dtype)
    early.check()
    _settle(model, device, read)
    progress(f"Starting {source.name}", 1.0)
    info = describe(config.model, replace(source, notes=(*source.notes, *notes)), model, tokenizer)
    return LoadedModel(info, model, tokenizer, files_mark(source.folder))


class _Bare(TorchFunctionMode):
    """Within, a model that is built without memory, on the device "meta", needs none of PyTorch's compiler.

    Two things would load it: filling a tensor there with random numbers, which means nothing, and `arange`, which
    is small and can be real.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__module__", "") == nn.init.__name__:
            tensor = args[0] if args else kwargs["tensor"]
            if tensor.is_meta:
                return tensor
        if func is torch.arange and torch.device(kwargs.get("device") or "cpu").type == "meta":
            kwargs["device"] = "cpu"
        return func(*args, **kwargs)


def _weights(source: Source, config: PreTrainedConfig, dtype: torch.dtype) -> PreTrainedModel:
    try:
        with quiet_transformers(), _Bare():
            pair: Any = AutoModelForCausalLM.from_pretrained(
                source.folder,
                config=config,
                dtype=dtype,
                attn_implementation="eager",
                local_files_only=True,
                trust_remote_code=False,
                use_safetensors=True,
                ignore_mismatched_sizes=True,  # not ignored: reported below by name
                output_loading_info=True,
            )
    except (SafetensorError, OSError, RuntimeError, ValueError, KeyError) as error:
        raise CorruptModel(f"The weights in {source.folder} cannot be read: {in_short(error)}") from error
    model: PreTrainedModel = pair[0]
    _check_complete(source, pair[1])
    return model


def _check_complete(source: Source, loaded: dict[str, Any]) -> None:
    """A tensor that is missing or of another shape would be filled with random numbers."""
    wrong = sorted({*loaded["missing_keys"], *(key for key, *_ in loaded["mismatched_keys"])})
    if wrong:
        more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        raise CorruptModel(f"{source.folder} lacks weights that its config asks for: {', '.join(wrong[:3])}{more}.")


def _settle(model: PreTrainedModel, device: torch.device, read: Mapping[str, EarlyTensor]) -> None:
    """On its device, in memory of its own, ready for inference."""
    model.train(False).requires_grad_(False)
    if device.type != "cpu":
        nn.Module.to(model, device)
        return
    early = _as_stored(dict(model.named_parameters()), read)
    with torch.no_grad():
        for tensor in {*model.parameters(), *model.buffers()}:  # a tied weight is one Parameter, and stays one
            tensor.data = early[tensor] if tensor in early else tensor.data.clone()


def _as_stored(parameters: Mapping[str, nn.Parameter], read: Mapping[str, EarlyTensor]) -> dict[Tensor, Tensor]:
    """Parameter -> the same values as they were read early, where it still lies in its file as the file has it.

    transformers may have put together or turned what it read under the same name: such a parameter lies elsewhere.
    """
    wholes = {id(tensor.whole): torch.from_numpy(tensor.whole) for tensor in read.values()}
    found: dict[Tensor, Tensor] = {}
    mapped: dict[Path, int] = {}  # file -> where its first byte would be
    for name, parameter in parameters.items():
        tensor = read.get(name)
        if tensor is None or parameter.shape != tensor.stored.shape or parameter.dtype != torch.float32:
            continue
        begins = parameter.data_ptr() - tensor.stored.offset
        if parameter.is_contiguous() and mapped.setdefault(tensor.file, begins) == begins:
            whole = wholes[id(tensor.whole)]
            found[parameter] = whole[tensor.start : tensor.start + tensor.stored.values].view(tensor.stored.shape)
    return found
