"""A model that cannot be loaded whole is refused before it does harm, with the reason and the way out."""

from __future__ import annotations

import http.server
import json
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub.constants
import pytest
import torch
from transformers import (
    AutoConfig,
    BertConfig,
    BertForMaskedLM,
    FalconConfig,
    FalconForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

from engine.__main__ import main
from engine.config import EngineConfig
from engine.errors import (
    CorruptModel,
    InvalidSettings,
    ModelNotFound,
    ModelTooLarge,
    ModelUnreachable,
    UnsupportedModel,
)
from engine.models import fit, hub, loader, placement
from engine.models.loader import load_model
from engine.models.safetensors_files import StoredTensor, held_bytes, read_headers
from engine.models.source import locate
from tests.engine.tiny_models import tiny_folder


def on_cpu(folder: Path | str, **changes: object) -> EngineConfig:
    return EngineConfig(model=str(folder), device="cpu", **changes)  # type: ignore[arg-type]


def edit_json(path: Path, **changes: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


# Not there


def test_a_path_that_is_not_there_is_named_and_never_called_a_bad_hub_id(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound) as caught:
        load_model(on_cpu(tmp_path / "gone"))
    assert str(tmp_path / "gone") in str(caught.value)
    assert "no public model" not in str(caught.value)


@pytest.mark.parametrize("named", ["./gone", "models/llama/7b", "gone.gguf", "C:\\models\\x", "bad name"])
def test_what_can_only_be_a_path_is_not_asked_of_the_hub(named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "fetch_from_hub", lambda *_, **__: pytest.fail("asked the Hub"))
    with pytest.raises(ModelNotFound, match="no folder or file"):
        load_model(on_cpu(named))


def test_a_folder_without_config_names_the_gguf_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "x.gguf").write_bytes(b"")
    with pytest.raises(ModelNotFound, match=r"Did you mean .*x\.gguf"):
        load_model(on_cpu(tmp_path))


def test_a_file_that_is_no_gguf_is_refused_by_its_kind(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(b"")
    with pytest.raises(UnsupportedModel, match=r"no \.gguf file"):
        load_model(on_cpu(tmp_path / "model.bin"))


def test_cuda_where_there_is_none_is_a_setting_out_of_range(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InvalidSettings, match="Use cpu or auto"):
        load_model(EngineConfig(model=str(tiny_folder(tmp_path)), device="cuda"))


# The Hub, played by a server on this machine


class _Hub(http.server.BaseHTTPRequestHandler):
    status, code = 404, "RepoNotFound"

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.send_header("X-Error-Code", self.code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def hub_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[type[_Hub]]:
    handler = type("Handler", (_Hub,), {})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    point_hub_to(monkeypatch, tmp_path, f"http://127.0.0.1:{server.server_port}")
    yield handler
    server.shutdown()
    thread.join()
    server.server_close()


def point_hub_to(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, address: str) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", address)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)


def test_a_name_neither_the_disk_nor_the_hub_knows_says_both(hub_server: type[_Hub]) -> None:
    with pytest.raises(ModelNotFound, match=r"no folder .*nobody/nothing, and the Hub has no public model"):
        load_model(on_cpu("nobody/nothing"))


def test_a_gated_model_says_how_to_get_access(hub_server: type[_Hub]) -> None:
    hub_server.status, hub_server.code = 403, "GatedRepo"
    with pytest.raises(ModelNotFound, match=r"asks for consent .* HF_TOKEN"):
        load_model(on_cpu("somebody/gated"))


def test_without_a_network_the_hub_is_called_unreachable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    point_hub_to(monkeypatch, tmp_path, "http://127.0.0.1:9")  # nothing listens there
    with pytest.raises(ModelUnreachable, match="the Hub does not answer"):
        load_model(on_cpu("somebody/model"))


# Damaged


def test_weights_cut_short_are_corrupt_with_both_sizes(tmp_path: Path) -> None:
    weights = tiny_folder(tmp_path) / "model.safetensors"
    size = weights.stat().st_size
    os.truncate(weights, size - 10)
    with pytest.raises(CorruptModel, match=f"cut short: {size - 10:,} of {size:,} bytes"):
        load_model(on_cpu(tmp_path))


@pytest.mark.parametrize("keep", [0, 4, 100])
def test_a_header_cut_short_is_corrupt(tmp_path: Path, keep: int) -> None:
    os.truncate(tiny_folder(tmp_path) / "model.safetensors", keep)
    with pytest.raises(CorruptModel, match="not a whole safetensors file"):
        load_model(on_cpu(tmp_path))


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    tiny_folder(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(CorruptModel, match="model-00001-of-00002"):
        load_model(on_cpu(tmp_path))


@pytest.mark.parametrize("text", ["{", "[]", '{"model_type": "llama", "hidden_size": "wide"}'])
def test_a_config_that_cannot_be_read_is_corrupt(tmp_path: Path, text: str) -> None:
    (tiny_folder(tmp_path) / "config.json").write_text(text)
    with pytest.raises(CorruptModel, match=r"config\.json"):
        load_model(on_cpu(tmp_path))


def test_a_tokenizer_that_cannot_be_read_is_corrupt(tmp_path: Path) -> None:
    (tiny_folder(tmp_path) / "tokenizer.json").write_text("{")
    with pytest.raises(CorruptModel, match="tokenizer"):
        load_model(on_cpu(tmp_path))


def test_missing_layers_are_refused_and_not_filled_with_random_numbers(tmp_path: Path) -> None:
    edit_json(tiny_folder(tmp_path) / "config.json", num_hidden_layers=3)
    with pytest.raises(CorruptModel, match=r"lacks weights .*layers\.2"):
        load_model(on_cpu(tmp_path))


def test_weights_of_another_shape_are_refused(tmp_path: Path) -> None:
    edit_json(tiny_folder(tmp_path) / "config.json", vocab_size=400)
    with pytest.raises(CorruptModel, match="embed_tokens"):
        load_model(on_cpu(tmp_path))


def test_a_persons_own_folder_is_never_deleted_for_being_damaged(tmp_path: Path) -> None:
    (tiny_folder(tmp_path) / "config.json").write_text("{")
    with pytest.raises(CorruptModel):
        load_model(on_cpu(tmp_path))
    assert (tmp_path / "model.safetensors").exists()


# Not for this program


def test_a_model_larger_than_free_memory_is_refused_before_loading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiny_folder(tmp_path)
    monkeypatch.setattr(placement, "free_memory", lambda: 1_000)
    monkeypatch.setattr(loader, "_weights", lambda *_: pytest.fail("loaded anyway"))
    with pytest.raises(ModelTooLarge, match="of memory are free"):
        load_model(on_cpu(folder))


def test_the_estimate_counts_values_in_the_dtype_they_will_have(tmp_path: Path) -> None:
    weights = read_headers(tiny_folder(tmp_path))
    parameters = load_model(on_cpu(tmp_path)).info.parameters
    assert held_bytes(weights, 2) == 2 * parameters
    assert held_bytes(weights, 4) == 4 * parameters
    assert held_bytes({"ids": StoredTensor("I32", (3, 5))}, 2) == 60  # integers stay what they are


def test_the_same_weights_in_a_second_layout_are_counted_once(tmp_path: Path) -> None:
    folder = tiny_folder(tmp_path)
    once = held_bytes(read_headers(folder), 4)
    shutil.copy(folder / "model.safetensors", folder / "consolidated.safetensors")
    assert held_bytes(read_headers(folder), 4) == once


def test_a_folder_with_another_layout_alone_says_what_it_has(tmp_path: Path) -> None:
    folder = tiny_folder(tmp_path)
    (folder / "model.safetensors").rename(folder / "consolidated.safetensors")
    with pytest.raises(UnsupportedModel, match=r"no safetensors weights .* \(only consolidated\.safetensors\)"):
        load_model(on_cpu(folder))


def siblings(**sizes: int) -> SimpleNamespace:
    """What the Hub says of a repository of 100 values in bfloat16."""
    files = [SimpleNamespace(rfilename=name.replace("__", "."), size=size) for name, size in sizes.items()]
    counted = SimpleNamespace(parameters={"BF16": 100, "I32": 5})
    return SimpleNamespace(siblings=files, sha="0", card_data=None, safetensors=counted)


def test_the_hub_is_asked_for_one_set_of_weights_in_the_bytes_that_will_be_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked, fetched = [], []
    monkeypatch.setattr(hub, "check_fits", lambda _name, needed, _free, place: checked.append((needed, place)))
    monkeypatch.setattr(hub, "snapshot_download", lambda _repo, **kw: fetched.append(kw["allow_patterns"]) or "x")
    info = siblings(model__safetensors=220, consolidated__safetensors=220, config__json=9)
    for dtype in ("auto", "bfloat16"):
        hub._download("a/b", info, lambda *_: None, "cpu", dtype, None)
    assert checked == [(420, "memory"), (220, "memory")]  # 100 values in 4 or 2 bytes, 5 integers in 4
    assert fetched[0] == [*hub.FILES, "model.safetensors"]


def test_a_containers_limit_counts_where_it_is_lower(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "memory.max").write_text("5000\n")
    (tmp_path / "memory.current").write_text("3000\n")
    monkeypatch.setattr(fit, "CGROUP", tmp_path)
    assert fit.free_memory() == 2_000
    (tmp_path / "memory.max").write_text("max\n")
    assert fit.free_memory() > 2_000


def test_attention_that_cannot_be_seen_is_refused_by_name(tmp_path: Path) -> None:
    FalconForCausalLM(
        FalconConfig(vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2)
    ).save_pretrained(tmp_path)
    with pytest.raises(UnsupportedModel, match=r"falcon.*attention interface"):
        load_model(on_cpu(tmp_path))


def hybrid(folder: Path, kind: str) -> Path:
    """A tiny folder whose config speaks of layers that keep no keys and values."""
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 300}
    config = AutoConfig.for_model(kind, **sizes)
    config.save_pretrained(folder)
    return folder


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("qwen3_next", "linear_attention"),
        ("lfm2", "conv"),
        ("deepseek_v32", "indexed_attention"),
        ("jamba", "linear_attention"),
        ("mamba", "linear_attention"),
        ("rwkv", "RWKV|no attention heads|running state"),
    ],
)
def test_a_hybrid_is_refused_by_the_kind_of_its_layers_before_its_weights_are_read(
    tmp_path: Path, kind: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = hybrid(tmp_path, kind)
    if kind == "lfm2":
        edit_json(folder / "config.json", layer_types=["conv", "full_attention"])
    with pytest.raises(UnsupportedModel, match=words):
        load_model(on_cpu(folder))
    assert main(["Hi", "--model", str(folder), "--device", "cpu"]) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_an_encoder_decoder_is_refused_by_name(tmp_path: Path) -> None:
    T5ForConditionalGeneration(
        T5Config(vocab_size=50, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2)
    ).save_pretrained(tmp_path)
    with pytest.raises(UnsupportedModel, match="encoder-decoder"):
        load_model(on_cpu(tmp_path))


def test_a_model_that_fills_in_masked_words_is_refused_by_name(tmp_path: Path) -> None:
    config = BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
    BertForMaskedLM(config).save_pretrained(tmp_path)
    with pytest.raises(UnsupportedModel, match="BertForMaskedLM"):
        load_model(on_cpu(tmp_path))


def test_an_unknown_architecture_is_named(tmp_path: Path) -> None:
    edit_json(tiny_folder(tmp_path) / "config.json", model_type="tomorrow")
    with pytest.raises(UnsupportedModel, match="'tomorrow'"):
        load_model(on_cpu(tmp_path))


def test_a_models_own_program_code_is_never_run(tmp_path: Path) -> None:
    folder = tiny_folder(tmp_path)
    (folder / "own.py").write_text("raise SystemExit('ran')")
    edit_json(folder / "config.json", model_type="own", auto_map={"AutoConfig": "own.Config"})
    with pytest.raises(UnsupportedModel, match="does not run"):
        load_model(on_cpu(folder))


def test_a_folder_with_pickled_weights_alone_is_refused(tmp_path: Path) -> None:
    folder = tiny_folder(tmp_path)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(UnsupportedModel, match="no safetensors weights"):
        load_model(on_cpu(folder))


def test_the_users_own_token_goes_along_only_where_they_named_the_model(monkeypatch):
    asked = []

    class NoHub:
        def model_info(self, _repo, *, token, **_):
            asked.append(token)
            raise OSError("no network")

    monkeypatch.setattr(hub, "HfApi", NoHub)
    for hub_token in (True, False):
        with pytest.raises(ModelUnreachable):
            locate("somebody/no-such-model-here", lambda *_: None, hub_token=hub_token)
    assert asked == [None, False]  # None: as the Hub's own client finds it
