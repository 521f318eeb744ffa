"""The command line: JSON lines that can be checked, a table that can be read, errors that say the way out."""

from __future__ import annotations

import base64
import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest

from engine.__main__ import main
from engine.text.tokenizer import Tokenizer
from explorer.recordings.reading import read_recording
from tests.engine.architectures import byte_tokenizer, tiny_llama_folder

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny llama as transformers saves one."""
    return tiny_llama_folder(tmp_path_factory.mktemp("tiny"))


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_one_json_object_per_step_and_16_new_tokens_are_16_steps(folder, capsys):
    assert main(["The cat", "--model", folder, "--max-new-tokens", "16", "--temperature", "0", "--json"]) == 0
    steps = lines(capsys)
    assert [s["index"] for s in steps] == list(range(16))
    assert [s["phase"] for s in steps] == ["prefill"] + ["decode"] * 15
    assert steps[0]["input_ids"] == [ord_id(c) for c in "The cat"]
    assert [s["kv_len"] for s in steps] == list(range(7, 23))
    assert all(later["input_ids"] == before["emitted_ids"] for before, later in itertools.pairwise(steps))
    assert all(s["kv_bytes"] == s["kv_len"] * 2 * 2 * 2 * 16 * 4 for s in steps)  # k, v; layers; heads; width; fp32
    assert [s["finish_reason"] for s in steps] == [None] * 15 + ["max_new_tokens"]
    assert all(s["u"] is None and s["stages"][-1]["kept"] == 1 for s in steps), "greedy draws nothing"


def ord_id(letter: str) -> int:
    """The byte tokenizer's id of an ASCII letter: found in its own sorted alphabet."""
    return Tokenizer(byte_tokenizer()).find(letter)


def test_a_step_has_exactly_these_fields(folder, capsys):
    main(["Hi", "--model", folder, "--max-new-tokens", "2", "--top-k", "5", "--json"])
    step = lines(capsys)[1]
    assert set(step) >= {
        "index",
        "phase",
        "input_ids",
        "positions",
        "emitted_ids",
        "text",
        "kv_len",
        "kv_bytes",
        "stages",
        "u",
        "stop",
        "finish_reason",
        "timing_ms",
        "batch_size",
    }
    assert [stage["name"] for stage in step["stages"]] == ["logits", "top_k"]
    assert step["stages"][1]["kept"] == 5 == len(step["stages"][1]["top"])
    assert sum(p for _, p in step["stages"][1]["top"]) == pytest.approx(1)
    assert set(step["timing_ms"]) == {"wait", "forward", "sample", "other", "total"}
    assert {rule["rule"] for rule in step["stop"]} >= {"end_id", "max_new_tokens", "context_limit", "stop_string"}


def test_the_same_seed_gives_the_same_tokens_and_another_gives_others(folder, capsys):
    drawn = []
    for seed in ("5", "5", "6"):
        main(["Hi", "--model", folder, "--max-new-tokens", "12", "--seed", seed, "--json"])
        drawn.append([s["emitted_ids"] for s in lines(capsys)])
    assert drawn[0] == drawn[1] != drawn[2]


def test_an_attention_row_covers_the_cached_keys_and_sums_to_1(folder, capsys):
    main(["Hello", "--model", folder, "--max-new-tokens", "3", "--attention", "1", "2", "--json"])
    for step in lines(capsys):
        assert len(step["attention"]) == step["kv_len"]
        assert sum(step["attention"]) == pytest.approx(1, abs=1e-5)


def test_the_models_facts(folder, capsys):
    assert main(["--info", "--json", "--model", folder]) == 0
    (facts,) = lines(capsys)
    expected = {
        "layers": 2,
        "heads": 4,
        "kv_heads": 2,
        "head_dim": 16,
        "vocab": 300,
        "kv_bytes_per_token": 512,
        "dtype": "float32",
        "device": "cpu",
        "folder": folder,
    }
    assert {key: facts[key] for key in expected} == expected
    assert facts["weight_bytes"] == facts["parameters"] * 4


def test_without_json_a_table_and_the_whole_text(folder, capsys):
    assert main(["Hi", "--model", folder, "--max-new-tokens", "2"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("step ")
    assert "stopped: max_new_tokens" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["Hi", "--top-p", "3"], "top_p must be from 0 to 1, got 3.0. Use 1 to switch it off."),
        (["Hi", "--temperature", "nan"], "temperature must be a finite number, got nan."),
        (["Hi", "--max-new-tokens", "0"], "max_new_tokens must be 1 or more, got 0."),
        (["Hi", "--seed", "-1"], "seed must be from 0 to"),
        (["Hi", "--attention", "9", "0"], "--attention 9 0 is out of range: layers are 0 to 1, heads 0 to 3."),
        ([""], "The prompt is empty"),
        ([], "There is no prompt."),
        (["Hi", "--model", "/no/such/folder"], "There is no folder or file /no/such/folder"),
        (["Hi" * 100], "needs room for one more. Shorten it by"),
    ],
)
def test_an_error_goes_to_stderr_with_exit_code_2(folder, capsys, arguments, words):
    given = arguments if "--model" in arguments else [*arguments, "--model", folder]
    assert main(given) == 2
    caught = capsys.readouterr()
    assert caught.err.startswith("error: ")
    assert words in caught.err


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ({"rag": "a", "tool_use": "b"}, "several chat templates (rag, tool_use) and none is called default"),
        ("{{ messages[0].content + 1 }}", "failed: TypeError"),
    ],
)
def test_a_chat_template_that_cannot_be_used_is_one_sentence_and_exit_code_2(tmp_path, capsys, template, words):
    folder = tiny_llama_folder(tmp_path)
    stock = byte_tokenizer()
    stock.chat_template = template
    stock.save_pretrained(folder)
    assert main(["Hi", "--model", folder, "--chat", "--max-new-tokens", "2"]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert len([line for line in said.splitlines() if line.startswith("error: ")]) == 1
    assert "Traceback" not in said


def test_a_run_is_kept_as_a_recording_and_as_a_page_beside_what_is_printed(folder, tmp_path, capsys):
    kept, page = tmp_path / "cat.loupe", tmp_path / "cat.html"
    files = ["--record", str(kept), "--html", str(page)]
    assert main(["The cat", "--model", folder, "--max-new-tokens", "3", "--json", *files]) == 0
    printed = capsys.readouterr()
    steps = [json.loads(line) for line in printed.out.splitlines()]
    recorded = read_recording(kept.read_bytes()).header["steps"]
    assert [step["emitted_ids"] for step in recorded] == [step["emitted_ids"] for step in steps]
    assert [step["kv_len"] for step in recorded] == [7, 8, 9]
    assert base64.b64encode(kept.read_bytes()).decode() in page.read_text(encoding="utf-8")
    assert str(kept) in printed.err


def test_a_file_that_cannot_be_written_is_said_before_the_model_is_loaded(tmp_path, capsys):
    assert main(["Hi", "--model", "no-such-model", "--record", str(tmp_path / "none" / "cat.loupe")]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_a_reader_that_has_enough_ends_it_quietly(folder):
    command = [sys.executable, "-m", "engine", "Hi", "--model", folder, "--max-new-tokens", "40", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(60) == 141
