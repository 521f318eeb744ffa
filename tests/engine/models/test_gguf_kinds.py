"""What only looks like a model in a GGUF file is refused by what it is, before anything is built or written."""

from __future__ import annotations

import json
from pathlib import Path

import gguf
import numpy as np
import pytest
from tokenizers import pre_tokenizers

from engine.errors import CorruptModel, UnsupportedModel
from engine.models import gguf_import
from engine.models.gguf_import import import_gguf
from engine.models.model_folder import read_manifest
from engine.models.tokenizer_files import read_tokenizer
from tests.engine.tiny_models import CHATML, byte_level_tokenizer, tiny_gguf


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOUPE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def silent(_: str, __: float) -> None:
    """Progress that nobody looks at."""


def written(path: Path, architecture: str = "llama", **metadata: object) -> Path:
    """A GGUF file of 512 values; keys are written with a double underscore for the dot."""
    writer = gguf.GGUFWriter(path, architecture)
    for key, value in metadata.items():
        name = key.replace("__", ".")
        writer.add_string(name, value) if isinstance(value, str) else writer.add_uint32(name, value)
    writer.add_tensor("blk.0.attn_q.weight.lora_a", np.zeros((8, 64), dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize(
    ("architecture", "metadata", "words"),
    [
        ("llama", {"general__type": "adapter"}, r"is an adapter \(LoRA\)"),
        ("llama", {"adapter__type": "lora"}, r"is an adapter \(LoRA\)"),
        ("clip", {}, "is a projector"),
        ("llama", {"general__type": "mmproj"}, "is a projector"),
        ("llama", {"general__type": "imatrix"}, "importance matrix"),
        ("llama", {"general__type": "vocab"}, "vocabulary without weights"),
        ("llama", {"split__no": 1, "split__count": 3}, r"is part 2 of 3 \(split\.no 1, split\.count 3\)"),
    ],
)
def test_what_is_no_model_is_refused_by_what_it_is(tmp_path, cache, architecture, metadata, words):
    with pytest.raises(UnsupportedModel, match=words):
        import_gguf(written(tmp_path / "a.gguf", architecture, **metadata), silent)
    assert not cache.exists()


def test_512_values_without_sizes_are_never_made_a_model_of_billions(tmp_path, cache, monkeypatch):
    """transformers takes its defaults for what is not stated: 6.6 billion weights, 26 GB."""
    monkeypatch.setattr(gguf_import, "_unpack", lambda *_: pytest.fail("built it"))
    with pytest.raises(CorruptModel, match="does not say its block_count, so its sizes are not known"):
        import_gguf(written(tmp_path / "a.gguf"), silent)
    assert not cache.exists()


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ({"block_count": 90_000_000}, "speaks of 90,000,000 layers, its tensors of 1"),
        ({"embedding_length": 8192}, r"embedding_length is 8,192, and token_embd\.weight is .* x 64"),
        ({"feed_forward_length": 50_000_000}, r"describes a model of 9,6\d\d,\d\d\d,\d\d\d weights, and it holds"),
        ({"attention.head_count": 0}, "says attention.head_count is 0"),
    ],
)
def test_sizes_that_the_tensors_do_not_bear_out_are_refused_before_anything_is_built(
    tmp_path, cache, monkeypatch, sizes, words
):
    monkeypatch.setattr(gguf_import, "_unpack", lambda *_: pytest.fail("built it"))
    path = restated(tiny_gguf(tmp_path / "a.gguf"), **sizes)
    with pytest.raises(CorruptModel, match=words):
        import_gguf(path, silent)
    assert not cache.exists()


def restated(path: Path, **sizes: int) -> Path:
    """The file with other numbers in its metadata, in place."""
    reader = gguf.GGUFReader(path, "r+")
    for key, value in sizes.items():
        field = reader.get_field(f"llama.{key}")
        assert field is not None
        field.parts[field.data[0]][0] = value
    reader.data.flush()
    return path


def test_another_models_tokenizer_beside_the_file_does_not_win_and_is_noticed(tmp_path):
    beside = tmp_path / "beside"
    beside.mkdir()
    alone = import_gguf(tiny_gguf(tmp_path / "a.gguf"), silent)
    stray = byte_level_tokenizer(chat_template="not this model's")
    stray.backend_tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    stray.save_pretrained(beside)
    (beside / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "NoSuchTokenizer"}))
    (beside / "generation_config.json").write_text(json.dumps({"eos_token_id": 77}))
    folder = import_gguf(tiny_gguf(beside / "a.gguf"), silent)
    for name in ("tokenizer.json", "generation_config.json"):
        assert (folder / name).read_text() == (alone / name).read_text()
    assert read_tokenizer(folder, "a")[0].chat_template == CHATML
    manifest = read_manifest(folder)
    assert "beside the file splits text otherwise" in " ".join(manifest.facts.notes)
    assert read_manifest(alone).facts.notes == ()


def test_a_class_that_overrides_the_files_own_split_is_put_right_and_said(tmp_path):
    """GPT2Tokenizer builds its own split from the vocabulary; the file splits at every "h" first."""
    from tokenizers import Tokenizer as FastTokenizer

    stock = byte_level_tokenizer()
    stock.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split("h", "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    stock.save_pretrained(tmp_path)
    plain, notes = read_tokenizer(tmp_path, "x")
    assert notes == ()
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config | {"tokenizer_class": "GPT2Tokenizer"}))
    read, notes = read_tokenizer(tmp_path, "x")
    text = "the other one"
    expected = FastTokenizer.from_file(str(tmp_path / "tokenizer.json")).encode(text).ids
    assert read(text)["input_ids"] == expected == plain(text)["input_ids"]
    assert "names a GPT2Tokenizer, which splits text otherwise than tokenizer.json" in notes[0]
    assert read.chat_template == plain.chat_template
    assert read.eos_token_id == plain.eos_token_id


def test_a_class_name_that_does_not_exist_does_no_harm_where_the_file_is_whole(tmp_path):
    byte_level_tokenizer().save_pretrained(tmp_path)
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config | {"tokenizer_class": "NoSuchTokenizer"}))
    read, _ = read_tokenizer(tmp_path, "x")
    assert read("the")["input_ids"] == byte_level_tokenizer()("the")["input_ids"]
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises((CorruptModel, UnsupportedModel), match="tokenizer"):
        read_tokenizer(tmp_path, "x")
