"""A GGUF file becomes a folder of the same numbers, and what gets lost on the way is written down."""

from __future__ import annotations

import json
from pathlib import Path

import gguf
import pytest
import torch
from transformers import AutoModelForCausalLM

from engine.config import EngineConfig
from engine.errors import CorruptModel, UnsupportedModel
from engine.models import gguf_import
from engine.models.gguf_facts import read_facts
from engine.models.gguf_import import import_gguf
from engine.models.loader import LoadedModel, load_model
from engine.models.model_folder import is_whole, read_manifest
from engine.text.tokenizer import Tokenizer
from tests.engine.tiny_models import CHATML, tiny_gguf


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test has a cache of its own."""
    monkeypatch.setenv("LOUPE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def silent(_: str, __: float) -> None:
    """Progress that nobody looks at."""


def notes_of(folder: Path) -> str:
    manifest = read_manifest(folder)
    assert manifest is not None
    return " ".join(manifest.facts.notes)


# What a file says of itself


def test_origin_names_the_most_common_type_and_not_the_norms(tmp_path: Path) -> None:
    facts = read_facts(tiny_gguf(tmp_path / "a.gguf"))
    assert facts.origin == "dequantised from Q4_1"
    assert read_facts(tiny_gguf(tmp_path / "b.gguf", quantised=False)).origin == "converted from F32"


def test_end_ids_are_all_that_the_file_declares(tmp_path: Path) -> None:
    assert read_facts(tiny_gguf(tmp_path / "a.gguf", eos_token_id=0, eot_token_id=1, template="")).end_ids == (0, 1)


def test_the_end_of_turn_its_template_writes_is_an_end_too(tmp_path: Path) -> None:
    assert read_facts(tiny_gguf(tmp_path / "a.gguf", eos_token_id=0, template=CHATML)).end_ids == (0, 2)


@pytest.mark.parametrize("keep", [0, 3, 100, 5_000, -40])
def test_a_file_cut_short_is_corrupt(tmp_path: Path, keep: int) -> None:
    path = tiny_gguf(tmp_path / "a.gguf")
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(CorruptModel, match="not a whole GGUF file"):
        import_gguf(path, silent)


# The import


def test_imported_weights_are_the_dequantised_blocks(tmp_path: Path) -> None:
    path = tiny_gguf(tmp_path / "a.gguf")
    model = AutoModelForCausalLM.from_pretrained(import_gguf(path, silent), dtype="auto")
    stored = {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}
    down = stored["blk.0.ffn_down.weight"]
    expected = torch.from_numpy(gguf.dequantize(down.data, down.tensor_type))
    assert model.model.layers[0].mlp.down_proj.weight.dtype == torch.float32
    assert torch.equal(model.model.layers[0].mlp.down_proj.weight, expected)


def test_the_folder_is_whole_and_says_where_it_comes_from(tmp_path: Path) -> None:
    folder = import_gguf(tiny_gguf(tmp_path / "a.gguf"), silent)
    manifest = read_manifest(folder)
    assert manifest is not None
    assert is_whole(folder)
    assert (manifest.facts.origin, manifest.facts.licence, manifest.facts.source) == (
        "dequantised from Q4_1",
        "mit",
        "a.gguf",
    )
    assert manifest.facts.notes == ()
    assert "quantization_config" not in json.loads((folder / "config.json").read_text())


def test_a_second_import_is_found_and_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tiny_gguf(tmp_path / "a.gguf")
    folder = import_gguf(path, silent)
    monkeypatch.setattr(gguf_import, "convert", lambda *_: pytest.fail("imported a second time"))
    assert import_gguf(path, silent) == folder


def test_another_file_under_the_same_name_is_imported_anew(tmp_path: Path) -> None:
    first = import_gguf(tiny_gguf(tmp_path / "a.gguf"), silent)
    second = import_gguf(tiny_gguf(tmp_path / "a.gguf", licence="apache-2.0"), silent)
    assert first != second


def test_progress_goes_from_0_to_1_and_never_back(tmp_path: Path) -> None:
    seen: list[float] = []
    config = EngineConfig(model=str(tiny_gguf(tmp_path / "a.gguf")), device="cpu")
    load_model(config, lambda _, done: seen.append(done))
    assert seen == sorted(seen)
    assert (seen[0], seen[-1]) == (0.0, 1.0)


# Fidelity


@pytest.mark.parametrize(
    ("pre", "expected"),
    [
        ("smollm", ["a", "1", "2", "1"]),
        ("gpt-2", ["a", "12", "1"]),
        ("llama-bpe", ["a", "12", "1"]),
        ("qwen2", ["a", "1", "2", "1"]),
    ],
)
def test_digits_are_split_as_the_file_declares(tmp_path: Path, pre: str, expected: list[str]) -> None:
    """The vocabulary has a token "12": whether it is used is the pre-tokenizer's choice."""
    path = tiny_gguf(tmp_path / "a.gguf", pre=pre)
    tokenizer = load_model(EngineConfig(model=str(path), device="cpu")).tokenizer
    assert [tokenizer.piece(i).text for i in tokenizer.encode("a121").ids] == expected


def test_known_ways_of_splitting_raise_no_doubt_and_an_unknown_one_does(tmp_path: Path) -> None:
    for pre in ("smollm", "gpt-2", "llama-bpe", "qwen2"):
        assert notes_of(import_gguf(tiny_gguf(tmp_path / f"{pre}.gguf", pre=pre), silent)) == ""
    assert "tomorrow-bpe" in notes_of(import_gguf(tiny_gguf(tmp_path / "new.gguf", pre="tomorrow-bpe"), silent))


def test_lost_rotary_scaling_and_lost_sliding_window_are_written_down(tmp_path: Path) -> None:
    folder = import_gguf(tiny_gguf(tmp_path / "a.gguf", rope_freqs=True, sliding_window=32), silent)
    assert "rotary" in notes_of(folder)
    assert "32 tokens" in notes_of(folder)


def test_all_end_ids_reach_the_loaded_model(tmp_path: Path) -> None:
    path = tiny_gguf(tmp_path / "a.gguf", eos_token_id=0, eot_token_id=2)
    assert load_model(EngineConfig(model=str(path), device="cpu")).info.end_ids == (0, 2)


def test_a_file_without_one_of_its_tensors_is_refused_and_not_filled_with_random_numbers(tmp_path: Path) -> None:
    with pytest.raises(CorruptModel, match="lacks weights"):
        import_gguf(tiny_gguf(tmp_path / "a.gguf", drop="blk.0.attn_k"), silent)


def test_an_architecture_transformers_cannot_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.gguf"
    writer = gguf.GGUFWriter(path, "rwkv6")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(UnsupportedModel, match="rwkv6"):
        import_gguf(path, silent)


# The bundled model


@pytest.mark.slow
def test_the_bundled_folder_is_whole_and_raises_no_doubt(bundled: LoadedModel) -> None:
    assert is_whole(Path(bundled.info.folder))
    assert bundled.info.notes == ()
    assert bundled.info.origin == "dequantised from Q4_1"


@pytest.mark.slow
def test_the_bundled_tokenizer_splits_digits_before_anything_else(bundled: LoadedModel) -> None:
    tokenizer = json.loads((Path(bundled.info.folder) / "tokenizer.json").read_text())
    first, second = tokenizer["pre_tokenizer"]["pretokenizers"]
    assert first == {"type": "Digits", "individual_digits": True}
    assert (second["type"], second["use_regex"]) == ("ByteLevel", True)
    assert isinstance(bundled.tokenizer, Tokenizer)
