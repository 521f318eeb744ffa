"""The parts that the self-check works with, each by a value that a stranger can check."""

from __future__ import annotations

import codecs
import random

import numpy as np
import pytest
import torch

from engine.decode.uniform import uniform
from engine.studies.self_check.bounds import Bounds
from engine.studies.self_check.findings import Distance, Tally
from engine.studies.self_check.judge_stops import numbers_in
from engine.studies.self_check.judge_text import found_at, text_of
from engine.studies.self_check.stock_run import StockRun, is_stock
from engine.studies.self_check.uniform import philox, uniform_of
from tests.engine.architectures import tiny_engine, tiny_model


def test_philox_gives_the_published_block():
    # Random123's known answers: philox4x64 10, all zeros, and all ones
    assert philox((0, 0), (0, 0, 0, 0)) == (
        0x16554D9ECA36314C,
        0xDB20FE9D672D0FDC,
        0xD7E772CEE186176B,
        0x7E68B68AEC7BA23B,
    )
    ones = 2**64 - 1
    assert philox((ones, ones), (ones, ones, ones, ones)) == (
        0x87B092C3013FE90B,
        0x438C3C67BE8D0224,
        0x9CC7D7C69CD777B6,
        0xA09CAEBF594F0BA0,
    )


@pytest.mark.parametrize("seed", [0, 1, 1234, 2**63 - 1])
def test_the_engines_u_is_the_one_worked_out_on_paper(seed):
    assert [uniform(seed, step) for step in range(20)] == [uniform_of(seed, step) for step in range(20)]


def test_text_and_pending_bytes_are_those_of_an_incremental_decoder():
    made = random.Random(3)
    pool = ["a", "é", "あ", "🦊"]
    for _ in range(3000):
        data = "".join(made.choice(pool) for _ in range(4)).encode()[made.randrange(3) :][: made.randrange(12)]
        odd = (0x41, 0x80, 0x90, 0xA0, 0xA6, 0xC0, 0xC2, 0xE0, 0xED, 0xEF, 0xF0, 0xF4, 0xF5)
        data += bytes(made.choices(odd, k=made.randrange(4)))
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        text = decoder.decode(data)
        assert text_of(data) == (text, decoder.getstate()[0]), data


def test_a_stop_string_counts_where_it_ends_beyond_what_was_seen():
    assert found_at("abcab", 0, ("ab",)) == 0
    assert found_at("abcab", 2, ("ab",)) == 3  # the first one was there before
    assert found_at("abcab", 5, ("ab",)) is None
    assert found_at("abcab", 3, ("b", "cab")) == 2  # the one that begins first


def test_numbers_are_read_out_of_words():
    assert numbers_in('1,024 of 2,048 tokens, "9 lives", probability 1.5e-05') == [1024, 2048, 1.5e-05]


def test_a_bound_grows_with_the_root_of_width_and_depth():
    model = tiny_model("llama")  # widest product 96, two layers: 12 x (6 x 2 + 1) = 156 roundings of half of 2^-23
    assert Bounds.of(model, 2).relative == pytest.approx(4 * 2**-24 * 156**0.5)
    assert Bounds.of(model.to(torch.bfloat16), 2).relative == pytest.approx(4 * 2**-8 * 13**0.5)  # one rounding a sum


def test_not_a_number_never_passes():
    tally, distance = Tally("x"), Distance("x", "logit")
    tally.within("a", float("nan"), 0, 1)
    tally.within("b", None, 0, 1)
    tally.all_within("c", np.array([np.nan]), np.zeros(1), np.ones(1))
    distance.add("d", np.array([np.nan]), np.zeros(1), 1.0)
    assert tally.check("").difference == 3
    assert not distance.check("").passed


def test_what_differs_is_named_in_short():
    tally = Tally("ids")
    for step in range(5):
        tally.same(f"step {step} input ids", tuple(range(1000)), ())
    words = tally.check("all steps").compared
    assert words.startswith("5 numbers: all steps. Differs: step 0 input ids is (0, 1, 2, ")
    assert words.endswith(", not (), and 2 more".replace(", not ()", "not ()"))
    assert len(words) < 300


def test_true_is_not_one():
    tally = Tally("x")
    tally.same("a", True, 1)
    assert not tally.check("").passed


def cuts(length: int, chunk: int, looked_at: set[int]) -> list[tuple[int, int]]:
    model = tiny_model("llama")
    return StockRun(model, tuple(range(length)), 0, frozenset(looked_at), chunk).cuts()


def test_a_short_session_is_one_forward_pass_and_a_long_one_is_cut_from_its_end():
    assert cuts(100, 256, {50, 99}) == [(0, 100)]
    long = cuts(700, 256, {699})
    assert long == [(0, 187), (187, 443), (443, 699), (699, 700)]
    looked = cuts(700, 256, {299, 450})
    assert [end for _, end in looked[:-1]] == [start for start, _ in looked[1:]]  # nothing twice, nothing left out
    assert {(299, 300), (450, 451)} <= set(looked)
    assert max(end - start for start, end in looked) <= 256


def test_cut_or_whole_the_stock_run_gives_the_same_rows_attention_and_cache():
    model, ids = tiny_model("llama"), tuple(range(40, 90))
    with torch.inference_mode():
        whole, cut = (StockRun(model, ids, 20, frozenset({30, 49}), chunk) for chunk in (256, 7))
        rows = [np.concatenate([rows for _, rows in run.pieces()]) for run in (whole, cut)]
    assert (whole.cuts(), len(cut.cuts()) > 6) == ([(0, 50)], True)
    assert rows[0].shape == (30, 300)
    assert np.allclose(*rows, atol=1e-5)
    for position in (30, 49):
        assert whole.attention[position].shape == (2, 4, position + 1)
        assert np.allclose(whole.attention[position], cut.attention[position], atol=1e-5)


def test_the_steps_of_others_get_in_between_the_layers_of_a_stock_run():
    model, pauses = tiny_model("llama"), []
    run = StockRun(model, tuple(range(40, 60)), 0, frozenset(), 256, lambda: pauses.append(1))
    with torch.inference_mode():
        list(run.pieces())
    assert len(pauses) == 2
    assert all(not layer._forward_pre_hooks for layer in model.model.layers)


def test_a_model_with_other_code_in_it_is_no_oracle():
    engine = tiny_engine(fast_kernels=True)
    assert engine.kernels.applied
    assert is_stock(engine.stock)
    assert not is_stock(engine.model)
    engine.close()
