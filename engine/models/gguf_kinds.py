"""What a GGUF file is, when it is no model, and whether its metadata and its tensors speak of the same one.

The container holds adapters, projectors and parts of split models as well, and a reader that finds no sizes takes
a default of several billion weights. So nothing is built before both have been held against each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.errors import CorruptModel, UnsupportedModel

KINDS = {
    "adapter": "an adapter (LoRA): changes to the weights of another model, not a model",
    "mmproj": "a projector: it turns images or sound into input for another model",
    "imatrix": "an importance matrix, a by-product of quantising",
    "vocab": "a vocabulary without weights",
}
PROJECTORS = ("clip", "mmproj")  # architectures


def refuse_what_is_no_model(path: Path, metadata: Mapping[str, Any]) -> None:
    """Raise where the file says that it is something else, or only a part."""
    architecture, kind = metadata.get("general.architecture"), str(metadata.get("general.type", "model")).lower()
    if "adapter.type" in metadata:
        kind = "adapter"
    if architecture in PROJECTORS:
        kind = "mmproj"
    if kind in KINDS:
        raise UnsupportedModel(f"{path} is {KINDS[kind]}. Name the model's own .gguf file.")
    count, number = metadata.get("split.count"), metadata.get("split.no")
    if isinstance(count, int) and count > 1:
        part = f"part {number + 1}" if isinstance(number, int) else "one part"
        raise UnsupportedModel(
            f"{path} is {part} of {count} (split.no {number}, split.count {count}), and Loupe reads whole files. "
            "Join the parts with llama.cpp's `llama-gguf-split --merge`, or use the model's safetensors folder."
        )
    if not isinstance(architecture, str) or not architecture:
        raise ValueError("it does not name its architecture")


def check_numbers(path: Path, sizes: Mapping[str, Any]) -> None:
    """Refuse sizes that cannot be; some files state one number for each layer."""
    for key, value in sizes.items():
        first = max(value, default=0) if isinstance(value, list) else value
        if value is not None and (not isinstance(first, int) or isinstance(first, bool) or first < 1):
            raise CorruptModel(f"{path} says {key} is {str(value)[:40]}; it must be a whole number above 0.")


def check_sizes(path: Path, sizes: Mapping[str, Any], tensors: Mapping[str, tuple[int, ...]]) -> None:
    """Hold the sizes that the metadata states against the tensors."""
    missing = [key for key, value in sizes.items() if value is None]
    if missing:
        raise CorruptModel(
            f"{path} does not say its {missing[0]}, so its sizes are not known. It may be no model, or damaged."
        )
    blocks = {name.split(".")[1] for name in tensors if name.startswith("blk.") and name.count(".") >= 2}
    if len(blocks) < sizes["block_count"]:
        raise CorruptModel(
            f"{path} lacks weights: its metadata speaks of {sizes['block_count']:,} layers, its tensors of "
            f"{len(blocks):,}. Fetch it again."
        )
    table = tensors.get("token_embd.weight", ())
    if len(table) != 2 or table[1] != sizes["embedding_length"]:
        raise CorruptModel(
            f"{path} lacks weights or holds another model's: embedding_length is {sizes['embedding_length']:,}, and "
            f"token_embd.weight is {' x '.join(f'{size:,}' for size in table) or 'missing'}. Fetch it again."
        )


def check_built(path: Path, built: int, held: int) -> None:
    """`built` weights would be made of the `held` ones: more than there are would be made up."""
    if built > held:
        raise CorruptModel(
            f"{path} lacks weights: its metadata describes a model of {built:,} weights, and it holds {held:,}. "
            "Fetch it again."
        )
