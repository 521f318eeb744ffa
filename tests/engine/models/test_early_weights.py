"""Weights that were read early are the file's, lie ready to be joined, and nothing is lost where they cannot be."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from engine.config import EngineConfig
from engine.kernels.joined_weights import find_matrices
from engine.measure.clocks import unique_bytes
from engine.models import early_weights
from engine.models.early_weights import ALIGNED, EarlyWeights, begin
from engine.models.loader import load_model
from tests.engine.architectures import byte_tokenizer, tiny_model

SEVERAL_FILES = "40KB"


def saved(folder: Path, name: str = "llama", *, shard: str = "1GB", **changes) -> Path:
    tiny_model(name, **changes).save_pretrained(folder, max_shard_size=shard)
    byte_tokenizer().save_pretrained(folder)
    return folder


def on_cpu(folder: Path, **changes) -> EngineConfig:
    return EngineConfig(model=str(folder), device="cpu", **changes)


@pytest.mark.parametrize("shard", ["1GB", SEVERAL_FILES])
@pytest.mark.parametrize("scatters", [True, False])
def test_what_is_read_early_is_what_the_files_hold(tmp_path, monkeypatch, shard, scatters):
    if not scatters:
        monkeypatch.delattr(early_weights.os, "preadv")
    folder = saved(tmp_path, shard=shard)
    files = sorted(folder.glob("*.safetensors"))
    assert (len(files) > 1) == (shard == SEVERAL_FILES)
    stored = {name: values for file in files for name, values in load_file(file).items()}
    read = EarlyWeights(folder).tensors()
    assert read.keys() == stored.keys()
    for name, tensor in read.items():
        values = tensor.whole[tensor.start : tensor.start + tensor.stored.values].reshape(tensor.stored.shape)
        assert np.array_equal(values, stored[name])
        assert tensor.whole.ctypes.data % ALIGNED == 0


@pytest.mark.parametrize("name", ["llama", "qwen2", "gpt2", "mixtral", "deepseek_v3"])
def test_a_model_read_early_is_the_model(tmp_path, name):
    folder = saved(tmp_path, name)
    plain, early = load_model(on_cpu(folder)), load_model(on_cpu(folder), early=begin(on_cpu(folder)))
    expected, found = plain.model.state_dict(), early.model.state_dict()
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[key], found[key]) for key in expected)
    assert early.info == plain.info


def test_matrices_that_read_the_same_input_are_joined_where_they_lie(tmp_path):
    folder = saved(tmp_path, "qwen2")  # its q, k and v have biases
    model = load_model(on_cpu(folder), early=begin(on_cpu(folder))).model
    before = {key: (tensor.data_ptr(), tensor.clone()) for key, tensor in model.state_dict().items()}
    size = unique_bytes(list(model.parameters()))
    with torch.no_grad():
        matrices = find_matrices(model)
    assert [matrix.attribute for matrix in matrices[:4]] == ["qkv", "gate_up", "qkv", "gate_up"]
    attention = model.model.layers[0].self_attn
    parts = [attention.q_proj, attention.k_proj, attention.v_proj]
    assert torch.equal(matrices[0].weight, torch.cat([part.weight for part in parts]))
    assert torch.equal(matrices[0].bias, torch.cat([part.bias for part in parts]))
    for key, tensor in model.state_dict().items():
        assert tensor.data_ptr() == before[key][0], key
        assert torch.equal(tensor, before[key][1]), key
    assert unique_bytes(list(model.parameters())) == size


@pytest.mark.parametrize("changes", [{"device": "cuda"}, {"dtype": "bfloat16"}])
def test_what_will_not_be_used_as_it_is_is_not_read_early(tmp_path, changes):
    assert begin(EngineConfig(model=str(saved(tmp_path)), **changes)) is None


def test_weights_in_16_bits_and_weights_beyond_half_of_what_is_free_are_not_read_early(tmp_path, monkeypatch):
    half = tiny_model("llama").to(torch.bfloat16)
    half.save_pretrained(tmp_path / "half")
    assert EarlyWeights(tmp_path / "half").tensors() == {}
    folder = saved(tmp_path / "full")
    size = sum(4 * tensor.stored.values for tensor in EarlyWeights(folder).tensors().values())
    monkeypatch.setattr(early_weights, "free_memory", lambda: 2 * size - 2)
    assert EarlyWeights(folder).tensors() == {}


def test_memory_that_was_read_into_is_not_asked_for_twice(tmp_path, monkeypatch):
    folder = saved(tmp_path)
    early = begin(on_cpu(folder))
    size = sum(4 * tensor.stored.values for tensor in early.tensors().values())
    monkeypatch.setattr("engine.models.loader.free_on", lambda _: size // 10)
    load_model(on_cpu(folder), early=early)


def test_a_file_with_a_gap_or_cut_short_is_left_to_the_loader(tmp_path):
    folder = saved(tmp_path)
    file = folder / "model.safetensors"
    data = file.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    last = max((name for name in header if name != "__metadata__"), key=lambda name: header[name]["data_offsets"][1])
    header[last]["data_offsets"] = [at + 64 for at in header[last]["data_offsets"]]
    text = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length :] + bytes(64))
    assert EarlyWeights(folder).tensors() == {}
    file.write_bytes(data[:-64])
    assert EarlyWeights(folder).tensors() == {}
