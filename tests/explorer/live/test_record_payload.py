"""Records as the browser gets them: every number arrives as it was, and what JSON cannot say is null."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from engine.config import SamplingParams
from engine.facts import ModelInfo
from engine.records import (
    CANDIDATES,
    SHOWN,
    TAIL_BINS,
    Candidates,
    Check,
    Draw,
    MemoryUse,
    PromptRow,
    Stage,
    StepRecord,
    StepTiming,
    StopCheck,
)
from engine.tokens import TokenPiece
from explorer.live.frame import Planes, pack, read_plane, unpack
from explorer.live.model_payload import json_safe, model_json
from explorer.live.record_payload import (
    attention_json,
    checks_json,
    max_pooled,
    named_ids,
    prompt_rows_json,
    step_json,
)
from explorer.live.token_payload import TokenList, pieces_json

STAGES = ("logits", "temperature", "top_k")


def record() -> StepRecord:
    """Step 4 of a run of a model with 2 layers and 3 KV heads, vocabulary 1,000: token 7 was drawn."""
    ids = np.arange(CANDIDATES, dtype=np.int32)[::-1].copy()
    return StepRecord(
        index=4,
        input_ids=(11,),
        positions=(9,),
        emitted_ids=(7,),
        kv_len=10,
        kv_bytes=460_800,
        kv_norms=np.arange(12, dtype=np.float32).reshape(2, 2, 3, 1),
        candidates=Candidates(
            ids=ids,
            logits=-np.arange(CANDIDATES, dtype=np.float32),
            seen=ids == 7,
            log_sum_exp=0.5,
            tail_counts=np.full(TAIL_BINS, 3, dtype=np.int32),
            tail_low=-400.0,
            tail_high=-256.0,
        ),
        stages=tuple(stage(name) for name in STAGES),
        draw=Draw("inverse_cdf", 0.412, 8, 7, 0.4, 0.45, 0.031, 0.05, 249),
        sampling=SamplingParams(temperature=0.8, top_k=50),
        stops=(StopCheck("max_new_tokens", "max new tokens", True, False, "5 of 256 new tokens", 5 / 256),),
        finish_reason=None,
        text="on a",
        held="#",
        pending=b"\xf0\x9f",
        timing=StepTiming(1.0, 20.0, 2.0, 24.5),
        memory=MemoryUse(538_060_032, 460_800, 1_000_000, 460_800, 265_000, 10**9, None),
        logit_rows=1,
        batch_size=3,
    )


def stage(name: str) -> Stage:
    probs = np.zeros(SHOWN)
    probs[:2] = (0.75, 0.25)
    top = np.array([255, 254], dtype=np.int32)
    return Stage(name, f"{name} label", 2, 0.125, 0.811, top, np.array([0.75, 0.25]), probs)


def sent(made: StepRecord, attention: np.ndarray | None = None) -> tuple[dict, bytes]:
    planes = Planes()
    step = step_json(made, planes, attention)
    header, body = unpack(pack({"step": step}, planes))
    return header["step"], body  # type: ignore[return-value]


def test_every_scalar_of_a_record_arrives():
    step, _ = sent(record())
    assert (step["index"], step["phase"], step["kv_len"], step["kv_bytes"]) == (4, "decode", 10, 460_800)
    assert (step["input_ids"], step["positions"], step["emitted_ids"]) == ([11], [9], [7])
    assert (step["text"], step["held"], step["pending"]) == ("on a", "#", "f09f")
    assert (step["logit_rows"], step["batch_size"], step["finish_reason"], step["forced"]) == (1, 3, None, False)
    assert step["sampling"]["temperature"] == 0.8
    assert step["draw"] == {
        "mode": "inverse_cdf",
        "u": 0.412,
        "drawn_id": 8,
        "token_id": 7,
        "low": 0.4,
        "high": 0.45,
        "raw_prob": 0.031,
        "final_prob": 0.05,
        "raw_rank": 249,
    }
    assert step["stops"][0]["state"] == "5 of 256 new tokens"
    assert step["timing_ms"] == {"wait": 1.0, "forward": 20.0, "sample": 2.0, "other": 1.5, "total": 24.5}
    assert step["memory"]["device_allocated_bytes"] is None
    assert (step["log_sum_exp"], step["tail"]) == (0.5, {"low": -400.0, "high": -256.0})


def test_a_step_says_how_many_tokens_were_shared_and_how_many_rebuilt():
    step, _ = sent(replace(record(), reused_tokens=3, rebuilt_tokens=41))
    assert (step["reused_tokens"], step["rebuilt_tokens"]) == (3, 41)


def test_every_array_of_a_record_arrives():
    made = record()
    step, body = sent(made)
    planes = {name: read_plane(body, plane) for name, plane in step["planes"].items()}
    assert set(planes) == {"kv_norms", "cand_ids", "cand_logits", "cand_seen", "tail_counts", "stage_probs"}
    assert planes["kv_norms"].tolist() == made.kv_norms.tolist()
    assert planes["cand_ids"].tolist() == made.candidates.ids.tolist()
    assert planes["cand_logits"].tolist() == made.candidates.logits.tolist()
    assert planes["cand_seen"].sum() == 1 and planes["cand_seen"][248] == 1
    assert planes["tail_counts"].sum() == 3 * TAIL_BINS
    assert planes["stage_probs"].shape == (3, SHOWN)
    assert planes["stage_probs"][1, :3].tolist() == [0.75, 0.25, 0.0]


def test_stages_name_their_likeliest_tokens():
    step, _ = sent(record())
    assert [s["name"] for s in step["stages"]] == list(STAGES)
    assert step["stages"][0]["top"] == [[255, 0.75], [254, 0.25]]


def test_a_rebuilt_step_has_no_timing():
    assert sent(replace(record(), timing=None))[0]["timing_ms"] is None


def test_infinity_in_a_record_becomes_null():
    made = record()
    odd = replace(made, candidates=replace(made.candidates, tail_low=float("-inf")), draw=replace(made.draw, u=None))
    step, _ = sent(odd)
    assert step["tail"]["low"] is None
    assert step["draw"]["u"] is None


def test_a_short_step_brings_every_attention_weight():
    weights = np.random.default_rng(0).random((2, 9, 10), dtype=np.float32)
    step, body = sent(record(), weights)
    assert np.abs(read_plane(body, step["planes"]["attention"]) - weights).max() < 5e-4  # float16
    assert "attention_thumb" not in step["planes"]


def test_beyond_256_keys_only_the_largest_of_each_stretch_is_sent():
    weights = np.zeros((1, 1, 257), dtype=np.float32)
    weights[0, 0, 256] = 1.0
    weights[0, 0, 3] = 0.5
    planes = Planes()
    header, body = unpack(pack(attention_json(weights, planes), planes))
    assert list(header) == ["attention_thumb"]
    thumb = read_plane(body, header["attention_thumb"])[0, 0]  # type: ignore[arg-type]
    assert (thumb[63], thumb[0], thumb[1:63].max()) == (255, 128, 0)


def test_every_key_falls_into_its_own_stretch():
    for num_keys in (64, 65, 257, 1000):
        starts = [b * num_keys // 64 for b in range(64)]
        for key in range(num_keys):
            row = np.zeros(num_keys, dtype=np.float32)
            row[key] = 1.0
            (lit,) = np.flatnonzero(max_pooled(row, 64))
            assert lit == max(b for b in range(64) if starts[b] <= key)


def test_ids_to_spell_are_those_of_bars_stages_draw_and_input():
    named = named_ids(record())
    assert {11, 7, 8, 255, 254} <= named
    assert named == {11, 7, 8} | set(range(CANDIDATES - SHOWN, CANDIDATES))


def test_prompt_rows_and_checks_are_plain():
    row = PromptRow(2, np.array([5], np.int32), np.array([0.5]), None, None)
    check = Check("logits", "ours, theirs", np.bool_(True), np.float32(0.25), 1e-4, "logits")  # type: ignore[arg-type]
    assert json.loads(json.dumps([prompt_rows_json([row]), checks_json([check])])) == [
        [{"position": 2, "top": [[5, 0.5]], "actual_next_id": None, "actual_next_prob": None}],
        [
            {
                "name": "logits",
                "compared": "ours, theirs",
                "passed": True,
                "difference": 0.25,
                "tolerance": 1e-4,
                "unit": "logits",
            }
        ],
    ]


# --- tokens ---------------------------------------------------------------------------------------------------


class Bytes:
    """Spells ids as single bytes, and joins UTF-8 over neighbours. Counts what it was asked for."""

    def __init__(self) -> None:
        self.asked = 0

    def piece(self, token_id: int) -> TokenPiece:
        raw = bytes([token_id])
        return TokenPiece(token_id, raw, raw.decode() if token_id < 128 else None, False)

    def pieces(self, token_ids):
        self.asked += len(token_ids)
        return tuple(self.piece(i) for i in token_ids)


def test_a_token_of_half_a_character_has_bytes_and_no_text():
    assert pieces_json({0xF0, 0x41}, Bytes()) == {
        "65": {"text": "A", "hex": "41", "special": False},
        "240": {"text": None, "hex": "f0", "special": False},
    }


def test_a_growing_sequence_is_spelled_once():
    spelling = Bytes()
    tokens = TokenList(spelling)
    ids = tuple([65] * 1000)
    tokens.json(ids, ("prompt",) * 1000)
    for more in range(1, 51):
        listed = tokens.json(ids + (66,) * more, ("prompt",) * 1000 + ("generated",) * more)
        assert len(listed) == 1000 + more
    assert spelling.asked < 1000 + 50 * 12
    assert listed[-1] == {"id": 66, "text": "B", "hex": "42", "special": False, "parts": [], "role": "generated"}


def test_a_cut_and_regrown_sequence_is_spelled_anew():
    tokens = TokenList(Bytes())
    tokens.json((65, 66, 67, 68, 69, 70), ("prompt",) * 6)
    assert [t["text"] for t in tokens.json((65, 66), ("prompt",) * 2)] == ["A", "B"]  # type: ignore[index, call-overload]
    regrown = tokens.json((65, 66, 71), ("prompt",) * 3)
    assert [t["text"] for t in regrown] == ["A", "B", "G"]  # type: ignore[index, call-overload]


def test_a_character_completed_by_a_later_token_changes_the_earlier_ones(page):
    page.ok("prefill", prompt="x🦊y", mode="raw")
    hexes = [(t["hex"], [p["char"] for p in t["parts"]]) for t in page.header["tokens"][:6]]
    assert hexes == [("78", []), ("f0", ["🦊"]), ("9f", ["🦊"]), ("a6", ["🦊"]), ("8a", ["🦊"]), ("79", [])]
    spelling = page.tab.workspace.engine.tokenizer
    ids = page.tab.workspace.active.session.recipe.prompt_ids
    grown = TokenList(spelling)
    for length in range(1, len(ids) + 1):
        listed = grown.json(ids[:length], ("prompt",) * length)
    assert listed == TokenList(spelling).json(ids, ("prompt",) * len(ids))


# --- model ----------------------------------------------------------------------------------------------------


def test_a_models_defaults_are_made_plain(page):
    info: ModelInfo = page.tab.workspace.engine.info
    odd = replace(info, defaults={"temperature": float("inf"), "ids": (1, 2), "f": np.float64(0.5), "o": object})  # type: ignore[arg-type]
    sent_model = model_json(odd)
    assert json.loads(json.dumps(sent_model, allow_nan=False))["defaults"] == {
        "temperature": None,
        "ids": [1, 2],
        "f": 0.5,
        "o": "<class 'object'>",
    }


def test_the_models_folder_stays_on_the_server(page, tiny_folder):
    model = model_json(replace(page.tab.workspace.engine.info, id="x", name="y"))
    assert str(tiny_folder) not in json.dumps(model)
    assert "folder" not in model
    assert model["chips"].endswith("fp32 · cpu")  # type: ignore[union-attr]


@pytest.mark.parametrize("value", [1, "a", None, True, 0.5, [1, [2]], {"a": {"b": None}}])
def test_plain_values_stay(value):
    assert json_safe(value) == value
