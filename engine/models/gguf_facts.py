"""What a GGUF file says of itself, read without its weights, and what gets lost on the way to safetensors.

The quantised type a file is named after ("Q4_1") is only its most common one: a Q4_1 file keeps its norms
in F32 and often its embedding in Q8_0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gguf import GGUFReader

from engine.errors import CorruptModel, LoupeError
from engine.models.gguf_kinds import check_numbers, refuse_what_is_no_model
from engine.models.load_errors import in_short

SIZE_KEYS = ("block_count", "embedding_length", "attention.head_count")
END_KEYS = ("eos_token_id", "eot_token_id", "eom_token_id")
# Spellings by which chat models end a turn; counted as an end only where the file's own template writes them.
TURN_ENDS = ("<|im_end|>", "<|eot_id|>", "<end_of_turn>", "<|end|>", "<|END_OF_TURN_TOKEN|>", "<|return|>")

# tokenizer.ggml.pre names by how they split text. Digits one by one, then as GPT-2:
DIGITS_THEN_GPT2 = frozenset({"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"})
GPT2 = frozenset({"gpt-2", "gpt2", "phi-2", "mpt", "olmo", "jais"})
# Those with a pattern of their own, which transformers knows:
OWN_PATTERN = frozenset(
    {"llama3", "llama-v3", "llama-bpe", "falcon3", "pixtral", "tekken", "qwen2", "deepseek-r1-qwen", "gpt-4o", "llama4"}
    | {"dbrx", "smaug-bpe", "megrez", "qwen35", "lfm2", "minimax-m2"}
)


@dataclass(frozen=True, slots=True)
class GgufFacts:
    """One GGUF file.

    values     weights in the file; pre-computed rotary factors are not weights
    tensors    name -> shape, the rows first
    sizes      what the metadata says of SIZE_KEYS; None where they do not
    quantised  the most common storage type by number of values: "Q4_1", "F16"
    pre        how text is split before merging; "" where the file does not say
    end_ids    every id the file declares an end, and its template's end of turn
    """

    path: Path
    architecture: str
    name: str
    licence: str
    values: int
    tensors: Mapping[str, tuple[int, ...]]
    sizes: Mapping[str, Any]
    quantised: str
    tokenizer: str
    pre: str
    end_ids: tuple[int, ...]
    sliding_window: int | None
    doubts: tuple[str, ...]

    @property
    def origin(self) -> str:
        verb = "converted" if self.quantised in ("F32", "F16", "BF16") else "dequantised"
        return f"{verb} from {self.quantised}"


def read_facts(path: Path) -> GgufFacts:
    """Raises CorruptModel where the file is cut short or is no GGUF file."""
    try:
        reader = GGUFReader(path)
        refuse_what_is_no_model(path, {key: field.contents() for key, field in reader.fields.items()})
        return _facts(path, reader)
    except LoupeError:
        raise
    except Exception as error:  # the reader takes every byte for what it says
        raise CorruptModel(f"{path} is not a whole GGUF file: {in_short(error)}. Fetch it again.") from error


def _facts(path: Path, reader: GGUFReader) -> GgufFacts:
    fields = _Fields(reader)
    architecture = str(fields.get("general.architecture"))
    sizes: Counter[str] = Counter()
    for tensor in reader.tensors:
        if not tensor.name.startswith("rope_"):
            sizes[tensor.tensor_type.name] += int(tensor.n_elements)
    stated = {key: fields.get(f"{architecture}.{key}") for key in SIZE_KEYS}
    check_numbers(path, stated)
    window = fields.get(f"{architecture}.attention.sliding_window")
    return GgufFacts(
        path=path,
        architecture=architecture,
        name=str(fields.get("general.name", path.stem)),
        licence=str(fields.get("general.license", "not stated")),
        values=sum(sizes.values()),
        tensors={tensor.name: tuple(int(size) for size in reversed(tensor.shape)) for tensor in reader.tensors},
        sizes=stated,
        quantised=sizes.most_common(1)[0][0] if sizes else "F32",
        tokenizer=str(fields.get("tokenizer.ggml.model", "")),
        pre=str(fields.get("tokenizer.ggml.pre", "")),
        end_ids=_end_ids(fields),
        sliding_window=int(window) if window else None,
        doubts=tuple(_doubts(fields, architecture, {tensor.name for tensor in reader.tensors})),
    )


class _Fields:
    """The file's metadata by key."""

    def __init__(self, reader: GGUFReader) -> None:
        self._fields = reader.fields

    def get(self, key: str, default: Any = None) -> Any:
        field = self._fields.get(key)
        return default if field is None else field.contents()


def _end_ids(fields: _Fields) -> tuple[int, ...]:
    declared = {fields.get(f"tokenizer.ggml.{key}") for key in END_KEYS} - {None}
    template = str(fields.get("tokenizer.chat_template", ""))
    used = [spelling for spelling in TURN_ENDS if spelling in template]
    if used:
        tokens = fields.get("tokenizer.ggml.tokens", [])
        declared |= {tokens.index(spelling) for spelling in used if spelling in tokens}
    return tuple(sorted(int(i) for i in declared))


def _doubts(fields: _Fields, architecture: str, tensors: set[str]) -> list[str]:
    """What cannot be carried over, in words: each would change the numbers without an error."""
    doubts = []
    scaling = fields.get(f"{architecture}.rope.scaling.type", "none")
    if "rope_freqs.weight" in tensors or scaling != "none":
        doubts.append(
            "The file scales its rotary positions (as Llama 3.1 and later do), and this import cannot carry that over: "
            "results drift from the original, the more so the longer the context."
        )
    pre = str(fields.get("tokenizer.ggml.pre", ""))
    if fields.get("tokenizer.ggml.model") == "gpt2" and pre not in DIGITS_THEN_GPT2 | GPT2 | OWN_PATTERN:
        doubts.append(
            f"How this file splits text ({pre or 'not stated'}) is not known here, so GPT-2's way is used: "
            "some prompts may become other tokens than in the original."
        )
    return doubts
