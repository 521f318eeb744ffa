"""Prefill and decode by formula: values as on paper, what each waits for, and charts and sentences that say so."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from engine.measure.hardware import HARDWARE
from engine.shapes import NAMED
from engine.studies.chunk_sizes import ChunkRun, ChunkStudy
from engine.studies.prefill_and_decode import PhaseTimes
from explorer.labs.prefill_decode import answer, figures, table, words
from explorer.labs.prefill_decode.priced import Rates, Sizes, request, sweep_of, turning_prompt

SHAPE_8B = NAMED["Llama 3.1 8B"].shape
IN_BF16 = Sizes(SHAPE_8B, 2, 2)
H100 = Rates("H100", 3.35e12, 989.4e12, "data sheet")
SLOW = Rates("slow", 10e9, 100e9, "made up")  # ridge 10


def test_a_sweep_of_the_8b_over_2000_tokens_is_29_tflop_and_reads_the_weights_once():
    sweep = sweep_of(IN_BF16, 2000)
    assert sweep.flops == 28_968_503_345_152
    assert (
        sweep.moved == 2 * 7_504_924_672 + 2000 * 131_072
    )  # bf16 weights that are multiplied, and new keys and values


def test_500_and_20_is_one_sweep_and_19_turns():
    priced = request(IN_BF16, 500, 20)
    assert (priced.prefill.tokens, len(priced.prefill.forwards)) == (500, 1)
    assert (priced.decode.tokens, len(priced.decode.forwards)) == (19, 19)
    last = priced.decode.forwards[-1]
    assert last.flops == 2 * 7_504_924_672 + 4 * 32 * 32 * 128 * 519  # the last query meets 519 keys
    assert last.moved == 2 * 7_504_924_672 + 519 * 131_072  # 518 read, 1 written


def test_as_many_tokens_go_through_in_both_requests_of_a_pair():
    pair = [request(IN_BF16, 500, 20), request(IN_BF16, 20, 500)]
    assert [sum(phase.tokens for phase in r.phases) for r in pair] == [519, 519]


def test_decode_of_the_8b_on_an_h100_waits_for_memory_and_its_long_sweep_for_arithmetic():
    priced = request(IN_BF16, 500, 20)
    assert priced.prefill.bound(H100) == "compute"
    assert priced.decode.bound(H100) == "memory"
    assert priced.decode.intensity == pytest.approx(1.0, abs=0.02)
    assert request(IN_BF16, 50, 20).prefill.bound(H100) == "memory"  # 50 tokens are too few


def test_a_long_answer_takes_the_h100_some_25_times_as_long_as_a_long_prompt():
    long, short = request(IN_BF16, 500, 20), request(IN_BF16, 20, 500)
    turn = 2 * 7_504_924_672 / 3.35e12  # 4.48 ms
    sweep = long.prefill.flops / 989.4e12  # 7.1 ms
    assert long.least_s(H100) == pytest.approx(sweep + 19 * turn, rel=0.01)
    assert short.least_s(H100) == pytest.approx(500 * turn, rel=0.01)


def test_each_phase_takes_at_least_the_larger_of_its_two_bounds():
    for phase in request(IN_BF16, 300, 40).phases:
        assert phase.least_s(H100) >= max(phase.compute_s(H100), phase.memory_s(H100)) * (1 - 1e-12)


def test_a_sweep_turns_to_arithmetic_at_the_length_where_both_times_meet():
    turns = turning_prompt(IN_BF16, H100)
    before, at = sweep_of(IN_BF16, int(turns) - 1), sweep_of(IN_BF16, int(turns))
    assert before.flops / 989.4e12 < before.moved / 3.35e12
    assert at.flops / 989.4e12 >= at.moved / 3.35e12
    assert 295 < turns < 340  # the rule for linear layers says 295; one row of logits and the cache shift it up


def test_no_prompt_is_long_enough_where_arithmetic_is_free():
    assert math.isinf(turning_prompt(IN_BF16, Rates("dream", 1.0, 1e30, "made up")))


def test_experts_are_read_more_of_the_longer_the_prompt():
    mixture = Sizes(NAMED["Mixtral 8x7B"].shape, 2, 2)
    one, many = sweep_of(mixture, 1), sweep_of(mixture, 512)
    assert one.moved < 0.3 * many.moved  # 13 of 47 billion parameters for one token
    assert many.moved == pytest.approx(2 * (46.7e9 - 32_000 * 4096), rel=0.01)


LONG = PhaseTimes(500, 3, (1000.0, 1000.0, 1000.0), (20.0, 20.0))
SHORT = PhaseTimes(3, 500, (30.0, 30.0, 30.0), (20.0,) * 499)


def test_the_answer_of_a_measured_pair_by_hand():
    assert answer.measured((LONG, SHORT)).plain == (
        "500 prompt tokens and 3 new ones took 1.04 s, 3 and 500 took 10 s: 9.62 times as long. "
        "A prompt token cost 2.00 ms, a new one 20.0 ms."
    )  # 1000 + 2 · 20 ms; 30 + 499 · 20 ms; 1000 ÷ 500
    stopped = PhaseTimes(3, 500, (30.0,), (20.0,) * 40)
    assert "took 830 ms until it was stopped." in answer.measured((LONG, stopped)).plain
    first, second = answer.measured_bars((LONG, SHORT)).payload()["rows"]
    assert [part["share"] for part in second["parts"]] == [0.003, 0.997]  # 30 and 9,980 of 10,010 ms
    assert first["said"] == "1.04 s"


def test_the_answer_by_formula_by_hand():
    pair = [request(IN_BF16, 500, 20), request(IN_BF16, 20, 500)]
    said = answer.computed("It", pair, H100).plain
    assert said == (
        "On one H100, It takes at least 92.6 ms for 500 prompt tokens and 20 new ones, and 2.25 s for 20 and 500: "
        "24.2 times as long. Prefill is compute-bound, decode is memory-bound."
    )  # 7.1 ms and 19 steps of 4.50 ms, 15.01 GB and 0.07 GB of cache; 4.48 ms and 499 steps of 4.49 ms


def test_the_answer_of_a_run_takes_the_median_of_steps_that_were_alone():
    def record(ms: float, *, batch: int = 1, fed: int = 1) -> SimpleNamespace:
        timing = SimpleNamespace(forward_ms=ms)
        return SimpleNamespace(timing=timing, batch_size=batch, reused_tokens=0, input_ids=(0,) * fed)

    run = answer.run_times([record(30, fed=10), record(20), record(22), record(90, batch=2), record(24)])
    assert run is not None
    assert answer.of_run(run).plain == (
        "In your run, one forward pass over the 10 prompt tokens took 30.0 ms, 3.00 ms a token. "
        "A decode step took 22.0 ms for one token: 7.33 times as long."
    )
    assert answer.run_times([record(30, fed=10)]) is None, "nothing was decoded yet"


def test_a_pair_that_was_stopped_is_not_compared():
    stopped = PhaseTimes(3, 500, (30.0,), (20.0,) * 40)
    told = answer.measured((LONG, stopped)).plain
    assert "until it was stopped" in told and "times as long" not in told


def test_the_measured_chart_needs_no_price():
    """Of some architectures only the cache is known: their times are drawn all the same."""
    figure = figures.measured((LONG, SHORT), [])
    assert tuple(figure.data[0].x) == (1.0, 0.03)
    assert "FLOP" not in figure.data[0].hovertemplate
    assert [len(one) for one in figure.data[0].customdata] == [1, 1]


def test_the_measured_chart_stacks_the_phases_and_its_table_has_a_row_for_each():
    priced = [request(IN_BF16, 500, 3), request(IN_BF16, 3, 500)]
    figure = figures.measured((LONG, SHORT), priced)
    assert [(bar.name, tuple(bar.x)) for bar in figure.data] == [("prefill", (1.0, 0.03)), ("decode", (0.04, 9.98))]
    assert "FLOP per byte" in figure.data[0].hovertemplate
    rows = table.measured_rows((LONG, SHORT), priced, SLOW)
    assert [(row["request"], row["phase"], row["tokens run"]) for row in rows] == [
        ("500 + 3", "prefill", 500),
        ("500 + 3", "decode", 2),
        ("3 + 500", "prefill", 3),
        ("3 + 500", "decode", 499),
    ]
    assert rows[0]["tokens per second"] == 500
    assert rows[0]["FLOP/s reached"] == pytest.approx(priced[0].prefill.flops)  # in one second
    assert rows[0]["at least, ms"] == pytest.approx(1e3 * priced[0].prefill.flops / 100e9)
    assert rows[1]["bound by"] == "memory"
    assert "at least, ms" not in table.measured_rows((LONG, SHORT), priced, None)[0]
    first = table.shown(rows, {"request": "", "ms": "ms", "at least, ms": "ms", "bytes moved": "B", "no": ""})[0]
    assert first == {"request": "500 + 3", "time": "1 s", "at least": "70.5 s", "bytes moved": "15.1 GB"}


def test_the_computed_chart_shows_both_regimes_in_its_hover_and_table():
    pair = [request(IN_BF16, 500, 20), request(IN_BF16, 20, 500)]
    figure = figures.computed(pair, H100)
    assert figure.data[0].x[0] == pytest.approx(1e3 * pair[0].prefill.least_s(H100))
    assert [row["bound by"] for row in table.computed_rows(pair, H100)] == ["compute", "memory", "memory", "memory"]


def test_the_verdict_names_ridge_regimes_and_the_turning_prompt():
    told = words.regime(request(IN_BF16, 500, 20), IN_BF16, H100)
    assert "ridge of H100 is 295 FLOP per byte" in told
    assert "is compute-bound" in told
    assert "Decode does 1.01 FLOP per byte and is memory-bound" in told
    assert "at most 222 tokens per second" in told
    assert "is memory-bound" in told
    assert "from 295." in told


def test_bare_numbers_have_three_digits_and_no_prefix():
    assert [table.plain(v) for v in (0.50448, 2.0, 15.94, 295.3, 70_224)] == ["0.504", "2", "15.9", "295", "70,200"]


def test_one_new_token_leaves_nothing_to_decode():
    assert "nothing to decode" in words.regime(request(IN_BF16, 500, 1), IN_BF16, H100)


def test_a_70b_in_bf16_does_not_fit_one_h100_and_takes_2():
    sizes = Sizes(NAMED["Llama 3.1 70B"].shape, 2, 2)
    told = words.fit(sizes, HARDWARE["H100 SXM"].memory, 1)
    assert "141 GB" in told
    assert "at least 2 of these are needed" in told
    assert words.fit(sizes, HARDWARE["H100 SXM"].memory, 2) == ""


def test_the_chart_of_lengths_marks_the_turning_point_and_reaches_past_it():
    figure = figures.prompts(IN_BF16, H100, 100)
    turns = turning_prompt(IN_BF16, H100)
    assert max(figure.data[0].x) > turns
    assert f"from {turns:,.0f} tokens on" in figure.layout.annotations[0].text
    assert figure.layout.xaxis.type == figure.layout.yaxis.type == "log"
    memory, arithmetic, least = (trace.y for trace in figure.data)
    assert all(c == pytest.approx(max(a, b)) for a, b, c in zip(memory, arithmetic, least, strict=True))


STUDY = ChunkStudy(
    8,
    (
        ChunkRun(8, 1, (100.0, 90.0)),
        ChunkRun(4, 2, (80.0, 85.0), 1e-6, 2e-6),
        ChunkRun(1, 8, (200.0, 180.0), 3e-6, 1e-6),
        ChunkRun(2, 4),
    ),
    12.5,
)


def test_pieces_are_told_with_the_quickest_size_and_the_largest_difference():
    told = words.pieces(ChunkStudy(8, STUDY.runs[:3], 12.5))
    assert "took 90.0 ms, 1 at a time 180.0 ms: 2.0 times as long" in told
    assert "The fastest were chunks of 4" in told
    assert "reach 12.5 and differ by 3.0e-06 at most (chunks of 1), the last row's logits by 2.0e-06" in told


def test_charts_of_pieces_leave_out_what_was_not_measured():
    total = figures.chunk_totals(STUDY)
    assert (tuple(total.data[0].x), tuple(total.data[0].y)) == ((8, 4, 1), (90, 80, 180))
    each = figures.chunk_forwards(STUDY, None, None)
    assert tuple(each.data[0].y) == (90, 40, 22.5)
    bounded = figures.chunk_forwards(STUDY, IN_BF16, SLOW)
    assert [trace.name for trace in bounded.data][1:] == ["memory at least", "arithmetic at least"]
    assert bounded.data[1].y[2] == pytest.approx(1e3 * (2 * 7_504_924_672 + 131_072) / 10e9)
    assert len(table.chunk_rows(STUDY)) == 3
