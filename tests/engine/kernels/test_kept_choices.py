"""A choice made by timing is made once: every later start of the same model on this machine runs the same kernels."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.kernels import kept_choices
from engine.kernels.choice import KernelChoice, was_made_in_a_busy_moment
from engine.kernels.kept_choices import keep, recall
from engine.kernels.linear import ROW_STEPS
from engine.kernels.speed_up import speed_up
from tests.engine.architectures import tiny_model

WEIGHTS = {(64, 48): [torch.ones(64, 48)] * 2}
TABLE = tuple(KernelChoice((64, 48), 2, rows, "onednn", 10.5, 4.25) for rows in ROW_STEPS)


def names(folder: Path, weights=WEIGHTS, threads: int = 2) -> dict[int, str]:
    chosen, _ = recall(folder, weights, threads)
    return {rows: method.name for by_rows in chosen.values() for rows, method in by_rows.items()}


def test_what_was_kept_is_recalled_whole(tmp_path):
    assert recall(tmp_path, WEIGHTS, 2) == ({}, ())
    keep(tmp_path / "new", WEIGHTS, 2, TABLE)
    assert names(tmp_path / "new") == dict.fromkeys(ROW_STEPS, "onednn")
    assert recall(tmp_path / "new", WEIGHTS, 2)[1] == TABLE


@pytest.mark.parametrize("changed", ["threads", "shape", "count", "torch", "processor"])
def test_for_anything_else_a_choice_is_made_anew(tmp_path, monkeypatch, changed):
    keep(tmp_path, WEIGHTS, 2, TABLE)
    weights = {
        "shape": {(64, 32): [torch.ones(64, 32)] * 2},
        "count": {(64, 48): [torch.ones(64, 48)] * 3},
    }.get(changed, WEIGHTS)
    if changed == "torch":
        monkeypatch.setattr(torch, "__version__", "0.1")
    if changed == "processor":
        monkeypatch.setattr(kept_choices, "processor", lambda: "another")
    assert names(tmp_path, weights, 3 if changed == "threads" else 2) == {}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "5",
        "[[64]]",
        '[[64,48,2,1,"stock","fast",1]]',
        '[[64,48,2,1,"magic",1,1]]',
        '[[64,48,2,1,"stock",1,1]]',
    ],
)
def test_a_file_that_is_damaged_or_incomplete_is_not_used(tmp_path, text):
    keep(tmp_path, WEIGHTS, 2, TABLE)
    (file,) = tmp_path.iterdir()
    file.write_text(text)
    assert recall(tmp_path, WEIGHTS, 2) == ({}, ())


def test_a_folder_that_cannot_be_written_costs_nothing_but_the_next_choice(tmp_path):
    (tmp_path / "taken").write_text("a file stands where the folder should be")
    keep(tmp_path / "taken", WEIGHTS, 2, TABLE)
    assert recall(tmp_path / "taken", WEIGHTS, 2) == ({}, ())


def test_a_second_start_times_nothing_and_gives_the_same_bits(tmp_path, monkeypatch):
    first, second = tiny_model("llama"), tiny_model("llama")
    with torch.inference_mode():
        made = speed_up(first, threads=2, memory=tmp_path)
        monkeypatch.setattr("engine.kernels.speed_up.choose_kernels", lambda *_: pytest.fail("a choice was made again"))
        again = speed_up(second, threads=2, memory=tmp_path)
        ids = torch.tensor([[5, 9, 200, 7]])
        assert torch.equal(first(input_ids=ids).logits, second(input_ids=ids).logits)
    assert (made.applied, made.kept, again.applied, again.kept) == (True, False, True, True)
    assert again.choices == made.choices


LARGE = {(2048, 1024): [torch.ones(2048, 1024)] * 2}  # 16 MB: more than is timed roughly


def table_of(weights, stock_gb_per_s: float) -> tuple[KernelChoice, ...]:
    return tuple(KernelChoice(shape, 2, rows, "stock", 1.0, stock_gb_per_s) for shape in weights for rows in ROW_STEPS)


@pytest.mark.parametrize(
    ("weights", "stock_gb_per_s", "was_busy"),
    [(LARGE, 1e-3, True), (LARGE, 1e6, False), (WEIGHTS, 1e-3, False)],
    ids=["a megabyte a second", "a petabyte a second", "a matrix too small to tell"],
)
def test_a_choice_that_was_made_in_a_busy_moment_is_known_by_its_stock_speed(weights, stock_gb_per_s, was_busy):
    assert was_made_in_a_busy_moment(weights, table_of(weights, stock_gb_per_s)) == was_busy


def test_a_choice_of_a_busy_moment_is_made_anew_and_kept(tmp_path, monkeypatch):
    with torch.inference_mode():
        speed_up(tiny_model("llama"), threads=2, memory=tmp_path)
        (file,) = tmp_path.iterdir()
        before = file.stat().st_mtime_ns
        monkeypatch.setattr("engine.kernels.speed_up.was_made_in_a_busy_moment", lambda *_: True)
        again = speed_up(tiny_model("llama"), threads=2, memory=tmp_path)
    assert not again.kept
    assert file.stat().st_mtime_ns > before
