"""Runs in a script: recorded from a model, opened from a file, read as numpy. The oracle is stock transformers."""

from __future__ import annotations

import ast
import json
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

import loupe
import loupe.recording
from engine.errors import LoupeError
from explorer.recordings.shipped import SHIPPED
from tests.explorer.conftest import tiny_llama

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "examples" / "a_run_in_numbers.ipynb"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_llama(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def run(folder: Path) -> Iterator[loupe.Run]:
    yield loupe.record("The cat sat", steps=6, model=str(folder), temperature=0.0, device="cpu", dtype="float32")
    loupe.recording._close()


def test_attention_probabilities_and_norms_are_those_of_stock_transformers(run: loupe.Run, folder: Path):
    model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32)
    with torch.no_grad():
        out = model(torch.tensor([run.token_ids[:-1]]), output_attentions=True, use_cache=True)
    prompt = len(run.steps[0].input_ids)
    for step in run.steps:
        row = prompt - 1 + step.index
        weights = torch.stack(out.attentions)[:, 0, :, row, : row + 1].numpy()  # (L, H, K)
        assert step.attention is not None
        assert step.attention.shape == weights.shape == (2, 4, step.kv_len)
        assert np.abs(step.attention - weights).max() < 2**-11  # float16 below 1
        probabilities = torch.softmax(out.logits[0, row].double(), -1).numpy()
        assert np.abs(step.probabilities - probabilities[step.candidate_ids]).max() < 1e-6
        assert step.token_id == int(out.logits[0, row].argmax())
    keys = torch.stack([layer.keys[0] for layer in out.past_key_values.layers])  # (L, G, T, D)
    newest = run.steps[-1].kv_norms
    assert newest.shape == (2, 2, 2, 1)
    assert np.abs(newest[0, :, :, 0] - keys[:, :, -1].norm(dim=-1).numpy()).max() < 1e-4


def test_a_run_that_was_saved_is_opened_as_it_was(run: loupe.Run, tmp_path: Path):
    again = loupe.open(run.save(tmp_path / "cat.loupe"))
    assert (again.prompt, again.token_ids, again.finish_reason) == (run.prompt, run.token_ids, "max_new_tokens")
    assert [step.token for step in again.steps] == [step.token for step in run.steps]
    for one, other in zip(run.steps, again.steps, strict=True):
        assert np.array_equal(one.attention, other.attention)  # type: ignore[arg-type]


def test_steps_counts_the_prefill_and_arrays_cannot_be_changed(run: loupe.Run):
    assert len(run.steps) == 6
    assert [step.phase for step in run.steps[:2]] == ["prefill", "decode"]
    assert run.text.startswith("The cat sat")
    with pytest.raises(ValueError, match="read-only"):
        run.steps[1].kv_norms[0] = 0


def test_the_same_settings_give_the_same_run_and_a_seed_another(folder: Path):
    settings = {"steps": 8, "model": str(folder), "device": "cpu", "dtype": "float32"}
    first, again, other = (loupe.record("ab", **settings, seed=seed) for seed in (3, 3, 4))
    assert first.token_ids == again.token_ids != other.token_ids


def test_a_table_has_a_row_a_step(run: loupe.Run):
    table = run.to_dataframe()
    assert table["kv_len"].tolist() == [11, 12, 13, 14, 15, 16]  # eleven bytes, and one more each step
    assert table["token_id"].tolist() == [step.token_id for step in run.steps]
    assert table["rank"].tolist() == [1] * 6


def test_without_pandas_a_table_says_what_to_install(run: loupe.Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(LoupeError, match="pip install pandas"):
        run.to_dataframe()


def test_a_notebook_shows_a_run_in_a_frame_that_can_reach_nothing(run: loupe.Run):
    shown = run._repr_html_()
    assert shown.startswith('<iframe sandbox="allow-scripts allow-downloads"')
    assert "allow-same-origin" not in shown
    assert "default-src &amp;#x27;none&amp;#x27;" in shown  # the page's own policy, in an attribute of the frame


def test_what_cannot_be_opened_is_said_in_words(tmp_path: Path):
    with pytest.raises(loupe.BadRecording, match=r"no\.loupe cannot be read"):
        loupe.open(tmp_path / "no.loupe")
    (tmp_path / "text.loupe").write_text("hello")
    with pytest.raises(loupe.BadRecording, match="not a Loupe recording"):
        loupe.open(tmp_path / "text.loupe")


def test_a_recording_is_opened_without_torch_or_streamlit():
    code = f"import sys; sys.modules['streamlit'] = None; import loupe; run = loupe.open({str(SHIPPED[1].file)!r}); "
    code += "print(run.steps[3].attention.shape, 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "(30, 9, 11) False"


def test_the_example_notebook_runs_from_top_to_bottom(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    source = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    ast.parse(source)
    monkeypatch.setenv("LOUPE_MODEL", str(folder))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notebook.py").write_text(source, encoding="utf-8")
    left = runpy.run_path(str(tmp_path / "notebook.py"))
    loupe.recording._close()
    assert len(left["run"].steps) == 12
    assert abs(left["by_layer"].sum() - left["run"].model["num_layers"]) < 1e-2
    assert (tmp_path / "cat.loupe").exists()
