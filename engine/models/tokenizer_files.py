"""The tokenizer of a folder, built as its tokenizer.json says, whatever class its configuration names.

A class may build a split of its own from the vocabulary alone, so that the same folder gives other ids than its own
file. What the file says is what the model was trained with: the two are compared on a sample text, and the file wins.
"""

from __future__ import annotations

from pathlib import Path

from tokenizers import Tokenizer as FastTokenizer
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from engine.errors import CorruptModel, UnsupportedModel
from engine.models.load_errors import in_short
from engine.models.transformers_output import quiet_transformers

SAMPLE = "The 3 foxes'  jump: 2,048 times 🦊 — naïve\n\tdone."  # text that any tokenizer must give back unchanged
SAMPLES = (  # words that merges are made of, contractions, numbers, code, other scripts
    SAMPLE,
    "hello world, It's 12.5% of what they've done; the other method doesn't look worth more than 1,000 USD in 2024!",
    "    if x_1 != 'a' and then:\r\n\treturn [0]*100  # TODO: the rest\n\n\n",
    "日本語のテスト ÅÉ 𝒳 e\u0301 \u00a0привет, мир — «да» مرحبا 안녕하세요",
)


def read_tokenizer(folder: Path, name: str) -> tuple[PreTrainedTokenizerFast, tuple[str, ...]]:
    """The folder's tokenizer, and what a person should know of it."""
    try:
        with quiet_transformers():
            stock = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        file = folder / "tokenizer.json"
        own = FastTokenizer.from_file(str(file)) if file.is_file() else None
        if own is None or not isinstance(stock, PreTrainedTokenizerFast) or _agree(own, stock.backend_tokenizer):
            return _require_fast(stock, name), ()
        with quiet_transformers():
            plain = PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True)
        agrees = _agree(own, plain.backend_tokenizer)
    except UnsupportedModel:
        raise
    except Exception as error:  # the tokenizers library raises bare Exception for a bad file
        raise CorruptModel(f"The tokenizer in {folder} cannot be read: {in_short(error)}. Fetch it again.") from error
    splits = (
        f"tokenizer_config.json names a {type(stock).__name__}, which splits text otherwise than tokenizer.json does"
    )
    if agrees:
        return plain, (f"{splits}. The file's way is used, which may differ from what transformers does by itself.",)
    return stock, (f"{splits}, and the file's way could not be put in place: some prompts may become other tokens.",)


def differs_from_beside(path: Path, backend: FastTokenizer) -> bool:
    """Whether a tokenizer.json in the folder of `path` splits text otherwise than `backend`."""
    file = path.parent / "tokenizer.json"
    if not file.is_file():
        return False
    try:
        return not _agree(FastTokenizer.from_file(str(file)), backend)
    except Exception:  # no tokenizer that can be read, so none that anybody could take for this model's
        return False


def _agree(one: FastTokenizer, other: FastTokenizer) -> bool:
    """Whether both make the same ids of every sample."""
    return all(
        one.encode(text, add_special_tokens=False).ids == other.encode(text, add_special_tokens=False).ids
        for text in SAMPLES
    )


def _require_fast(stock: object, name: str) -> PreTrainedTokenizerFast:
    if not isinstance(stock, PreTrainedTokenizerFast):
        raise UnsupportedModel(f"{name} has no tokenizer.json, which Loupe needs to see a token's bytes.")
    return stock
