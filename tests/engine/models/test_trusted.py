"""A model is proven once: again only where something that the proof depends on has changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from engine.config import EngineConfig
from engine.forward.scratch import Scratch
from engine.models import trusted
from engine.models.loader import load_model
from engine.models.proof import prove
from tests.engine.architectures import tiny_llama_folder


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("LOUPE_CACHE", str(tmp_path / "cache"))
    threads = torch.get_num_threads()
    yield tiny_llama_folder(tmp_path / "tiny")
    torch.set_num_threads(threads)


@pytest.fixture
def proofs(monkeypatch):
    """One entry for each proof that was made."""
    made = []
    monkeypatch.setattr(trusted, "prove", lambda *asked: made.append(1) or prove(*asked))
    return made


def start(folder: str, **changes) -> trusted.TrustedModel:
    config = EngineConfig(model=folder, device="cpu", threads=1, **({"fast_kernels": False} | changes))
    with torch.inference_mode():
        return trusted.trust(load_model(config), config, Scratch())


def test_the_same_model_is_proven_once(folder, proofs):
    first, second = start(folder, fast_kernels=True), start(folder, fast_kernels=True)
    assert len(proofs) == 1
    assert first.may_share and second.may_share
    assert first.kernels.applied and second.kernels.applied


@pytest.mark.parametrize("changed", ["weights", "program", "transformers", "processor", "dtype", "kernels", "capture"])
def test_whatever_the_proof_depends_on_asks_for_another(folder, proofs, monkeypatch, changed):
    start(folder)
    changes = {"dtype": {"dtype": "bfloat16"}, "kernels": {"fast_kernels": True}, "capture": {"capture": False}}
    if changed == "weights":
        os.utime(Path(folder) / "model.safetensors", ns=(1, 1))
    if changed == "program":
        monkeypatch.setattr(trusted, "_program", lambda: "another")
    if changed == "transformers":
        monkeypatch.setattr(trusted.transformers, "__version__", "0.1")
    if changed == "processor":
        monkeypatch.setattr(trusted, "processor", lambda: "another")
    start(folder, **changes.get(changed, {}))
    assert len(proofs) == 2


def test_kernels_that_were_chosen_anew_are_proven(folder, proofs, tmp_path):
    start(folder, fast_kernels=True)
    (kept,) = (tmp_path / "cache" / "kernels").iterdir()
    text = kept.read_text()
    kept.write_text(text.replace("stock", "onednn") if "stock" in text else text.replace("onednn", "stock"))
    start(folder, fast_kernels=True)
    assert len(proofs) == 2


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"may_share": true}', '{"may_share": true, "kernels": 5}', "\x00"])
def test_a_damaged_record_is_no_proof(folder, proofs, tmp_path, text):
    start(folder)
    (kept,) = (tmp_path / "cache" / "proofs").iterdir()
    kept.write_text(text)
    start(folder)
    assert len(proofs) == 2


def test_a_model_that_failed_leaves_no_record(folder, proofs, tmp_path, monkeypatch):
    gated = torch.nn.functional.silu
    monkeypatch.setattr("engine.kernels.fast_modules.FastMLP.forward", lambda self, x: 1.5 * gated(x))
    monkeypatch.setattr("engine.kernels.install._RowBuilder.build", lambda *_: False)
    for _ in range(2):
        assert not start(folder, fast_kernels=True).kernels.applied
    assert len(proofs) == 4  # with our kernels, and without them, at both starts
    assert not (tmp_path / "cache" / "proofs").exists()


def test_a_cache_that_cannot_be_written_costs_a_proof_and_no_more(folder, proofs, tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "proofs").write_text("a file stands where the folder should be")
    start(folder)
    start(folder)
    assert len(proofs) == 2
