"""Whatever stands in a model's files, the answer is a model or words, never another exception."""

from __future__ import annotations

import json
import random
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.config import EngineConfig
from engine.errors import LoupeError
from engine.models.gguf_import import import_gguf
from engine.models.loader import load_model
from engine.models.safetensors_files import INDEX, SINGLE
from tests.engine.tiny_models import tiny_folder, tiny_gguf

WORDS: tuple[object, ...] = (None, True, "", "wide", "..\\..", "../../etc/passwd", "\ud800", {"rope_type": "nowhere"})
NUMBERS: tuple[object, ...] = (-1, 0, 5, 1e308, float("inf"), float("nan"), 10**30)
ODD = (*WORDS, *NUMBERS, [], {}, [[]], [None], ["x"], {"a": 1}, [1] * 5000)
DEEP = "[" * 60_000 + "]" * 60_000
DIGITS = "9" * 5_000


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_folder(tmp_path_factory.mktemp("whole"))


def tried(call: Callable[[], object]) -> None:
    """It gives something, or one of our errors with words in it, and not too many."""
    said = "a model, or enough words"
    try:
        call()
    except LoupeError as error:
        said = str(error)
    assert 20 < len(said) < 1_000


def load(folder: Path) -> None:
    load_model(EngineConfig(model=str(folder), device="cpu"))


def copy_of(whole: Path, folder: Path) -> Path:
    shutil.copytree(whole, folder, dirs_exist_ok=True)
    return folder


def test_every_field_of_a_config_may_hold_anything(whole: Path, tmp_path: Path) -> None:
    dice, folder = random.Random(0), copy_of(whole, tmp_path)
    config = json.loads((whole / "config.json").read_text())
    names = [
        *config,
        "architectures",
        "rope_parameters",
        "layer_types",
        "quantization_config",
        "auto_map",
        "text_config",
    ]
    for name in names:
        for value in dice.sample(ODD, 2):
            (folder / "config.json").write_text(json.dumps(config | {name: value}))
            tried(lambda: load(folder))


@pytest.mark.parametrize("name", ["vocab_size", "hidden_size", "num_hidden_layers", "intermediate_size", "head_dim"])
def test_a_size_of_a_hundred_million_is_refused_before_anything_of_it_is_built(whole, tmp_path, name) -> None:
    folder = copy_of(whole, tmp_path)
    config = json.loads((whole / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {name: 100_000_000}))
    with pytest.raises(LoupeError, match=r"100,000,000|lacks weights"):
        load(folder)


@pytest.mark.parametrize(
    "text", [DEEP, DIGITS, '{"model_type": ' + DEEP + "}", '{"vocab_size": ' + DIGITS + "}", "\x00", '"']
)
@pytest.mark.parametrize(
    "file", ["config.json", INDEX, "tokenizer.json", "tokenizer_config.json", "generation_config.json"]
)
def test_files_that_are_no_json_or_far_too_deep(whole, tmp_path, file, text) -> None:
    folder = copy_of(whole, tmp_path)
    (folder / file).write_text(text)
    if file == INDEX:
        (folder / SINGLE).unlink()
    tried(lambda: load(folder))


@pytest.mark.parametrize(
    "weight_map", [5, [], {}, None, "x", {"a": 5}, {"a": "../x.safetensors"}, {"a": "/dev/zero"}, {"a": []}]
)
def test_an_index_that_names_no_files_is_refused(whole, tmp_path, weight_map) -> None:
    folder = copy_of(whole, tmp_path)
    (folder / SINGLE).unlink()
    (folder / INDEX).write_text(json.dumps({"weight_map": weight_map}))
    with pytest.raises(LoupeError, match=r"index\.json"):
        load(folder)


def test_every_number_of_a_header_may_be_anything(whole: Path, tmp_path: Path) -> None:
    dice, folder = random.Random(1), copy_of(whole, tmp_path)
    raw = (whole / SINGLE).read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + length])
    names = [name for name in header if name != "__metadata__"]
    for field in ("dtype", "shape", "data_offsets"):
        for value in (*ODD, [-1, 2], [2**62, 2**62], [1e9, 1], [0, 2**63]):
            changed = header | {(name := dice.choice(names)): header[name] | {field: value}}
            text = json.dumps(changed).encode()
            (folder / SINGLE).write_bytes(struct.pack("<Q", len(text)) + text + raw[8 + length :])
            tried(lambda: load(folder))
    for text in (DEEP.encode(), b"5", b"[]", b'{"a": 5}', b'{"a": ' + DEEP.encode() + b"}"):
        (folder / SINGLE).write_bytes(struct.pack("<Q", len(text)) + text + raw[8 + length :])
        with pytest.raises(LoupeError, match="not a whole safetensors file"):
            load(folder)


def test_any_byte_of_a_gguf_files_head_may_be_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOUPE_CACHE", str(tmp_path / "cache"))
    dice, path = random.Random(2), tiny_gguf(tmp_path / "a.gguf")
    raw = path.read_bytes()
    for _ in range(60):
        changed = bytearray(raw)
        for _ in range(dice.choice((1, 1, 4))):
            changed[dice.randrange(1_200)] = dice.choice((0, 1, 127, 128, 255, dice.randrange(256)))
        path.write_bytes(changed)
        tried(lambda: import_gguf(path, lambda *_: None))
    models = tmp_path / "cache" / "models"
    assert not [one for one in models.glob(".*") if "partial" in one.name]
