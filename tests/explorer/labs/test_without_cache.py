"""The bill of a race without a cache: totals as on paper, the crossover named, and charts that say what they show."""

from __future__ import annotations

import pytest

from engine.costs.shape import ModelShape
from engine.costs.sizes import CachedLayers
from engine.shapes import NAMED
from engine.studies.uncached import RaceStep, Turn
from explorer.labs.without_cache import answer, figures
from explorer.labs.without_cache.table import quantity_rows, step_rows
from explorer.labs.without_cache.totals import Bill, bill, formula

SMOL = NAMED["SmolLM2-135M"].shape


def race(prompt_len: int, cached_ms: list[float], uncached_ms: list[float]) -> list[RaceStep]:
    """A race with the given times, counted as the engine counts."""
    steps = []
    for t, (a, b) in enumerate(zip(cached_ms, uncached_ms, strict=True)):
        length = prompt_len + t
        square = length * (length + 1) // 2
        cached = Turn(length if t == 0 else 1, square if t == 0 else length, a, 7)
        steps.append(RaceStep(t, cached, Turn(length, square, b, 7), 7, "cached", 1e-5 * t, 0.5))
    return steps


def even(prompt_len: int, steps: int) -> Bill:
    return bill(race(prompt_len, [10.0] * steps, [20.0] * steps), prompt_len, SMOL)


def test_a_prompt_of_4_and_200_new_tokens_are_20700_positions_against_203():
    whole = even(4, 200)
    assert whole.uncached.total("positions") == whole.formula.uncached == 20_700
    assert whole.cached.total("positions") == whole.formula.cached == 203
    assert whole.uncached.total("pairs") == whole.formula.uncached_pairs == 1_414_900
    assert whole.cached.total("pairs") == whole.formula.cached_pairs == 20_706
    assert whole.counts_agree
    assert whole.ratio("positions") == pytest.approx(101.97, abs=0.005)


def test_a_count_that_is_off_by_one_is_found():
    steps = race(4, [10.0] * 5, [20.0] * 5)
    assert bill(steps, 4, SMOL).counts_agree
    steps[3] = RaceStep(3, Turn(1, 8, 10.0, 7), steps[3].uncached, 7, "cached", 0.0, 0.5)  # 4 + 3 keys, not 8
    assert not bill(steps, 4, SMOL).counts_agree


def test_what_was_counted_until_a_stop_agrees_with_the_formula_of_so_many_steps():
    assert even(4, 37).counts_agree
    assert formula(4, 37).uncached == 37 * 4 + 37 * 36 // 2 == 814


def test_flops_of_a_step_are_those_of_a_sweep_without_a_cache_and_of_one_token_with_it():
    two = even(100, 2)
    assert two.cached.flops[0] == two.uncached.flops[0]  # the prefill is the same
    linear = 2 * SMOL.parameters.matmul
    assert two.cached.flops[1] == linear + 4 * 30 * 9 * 64 * 101
    head = 2 * 49_152 * 576
    assert two.uncached.flops[1] == 101 * linear - 100 * head + 4 * 30 * 9 * 64 * (101 * 102 // 2)


def test_flops_are_left_out_where_only_the_cache_of_an_architecture_is_known():
    shape = ModelShape(
        num_layers=2,
        num_heads=4,
        num_kv_heads=2,
        head_dim=16,
        hidden_size=64,
        intermediate_size=0,
        vocab_size=300,
        cache=(CachedLayers(layers=2, heads=2, key=16, value=16),),
    )
    assert bill(race(4, [1.0, 1.0], [2.0, 2.0]), 4, shape).cached.flops == ()


@pytest.mark.parametrize(
    ("cached_ms", "uncached_ms", "ahead_from"),
    [
        ([10, 1, 1], [11, 5, 5], 0),  # from the start
        ([10, 9, 1, 1], [10, 5, 5, 5], 3),  # totals 10/10, 19/15, 20/20, 21/25
        ([10, 9, 9], [10, 5, 5], None),  # never
        ([5, 9, 1], [6, 5, 9], 2),  # ahead, behind, ahead: only the last time counts
    ],
)
def test_the_crossover_is_the_step_from_which_the_cached_total_stays_ahead(cached_ms, uncached_ms, ahead_from):
    assert bill(race(3, cached_ms, uncached_ms), 3, SMOL).ahead_from == ahead_from


def test_steps_whose_cached_forward_was_the_slower_one_are_named():
    assert bill(race(3, [10, 9, 1], [10, 5, 5]), 3, SMOL).slower_steps == (1,)


def test_running_totals_are_sums():
    whole = bill(race(3, [10, 2, 3], [10, 20, 30]), 3, SMOL)
    assert whole.cached.running("ms") == (10, 12, 15)
    assert whole.uncached.running("positions") == (3, 7, 12)


@pytest.mark.parametrize("quantity", ["positions", "pairs", "flops", "ms"])
def test_charts_show_both_loops_with_unit_and_formula(quantity):
    whole = even(4, 6)
    for figure, cached, uncached in (
        (figures.per_step(whole, quantity), whole.cached.of(quantity), whole.uncached.of(quantity)),
        (figures.in_all(whole, quantity), whole.cached.running(quantity), whole.uncached.running(quantity)),
    ):
        assert [tuple(trace.y) for trace in figure.data] == [cached, uncached]
        assert [trace.name for trace in figure.data] == ["with the cache", "without it"]
        assert figure.layout.yaxis.title.text
        assert "P = 4" in figure.data[0].hovertemplate
    assert "N·P + N(N − 1) / 2" in figures.in_all(whole, "positions").data[1].hovertemplate


def test_the_chart_of_total_times_marks_the_crossover_and_leaves_it_out_where_there_is_none():
    ahead = figures.in_all(bill(race(3, [10, 9, 1, 1], [10, 5, 5, 5]), 3, SMOL), "ms")
    assert [note.text for note in ahead.layout.annotations] == ["ahead from step 3"]
    behind = figures.in_all(bill(race(3, [10, 9], [10, 5]), 3, SMOL), "ms")
    assert not behind.layout.annotations


def test_a_log_scale_is_a_log_scale():
    assert figures.per_step(even(4, 6), "ms", log=True).layout.yaxis.type == "log"


def test_the_chart_of_differences_marks_where_another_token_was_drawn():
    steps = race(3, [1, 1, 1], [1, 1, 1])
    assert len(figures.disagreement(steps).data) == 2
    other = Turn(5, 15, 1.0, 8)
    steps[2] = RaceStep(2, steps[2].cached, other, 7, "cached", 3.0, 0.5)
    marks = figures.disagreement(steps).data[2]
    assert (marks.x, marks.y) == ((2,), (3.0,))
    halves = figures.disagreement(steps).data[1]
    assert tuple(halves.y) == (0.25, 0.25, 0.25)


def test_tables_hold_what_the_charts_show():
    rows = quantity_rows(even(4, 3), "positions", running=True)
    assert rows[2] == {"step": 2, "positions so far, cached": 6, "positions so far, uncached": 15}
    drawn = step_rows(race(3, [1, 1], [2, 2]), ["<b>", " cat"])
    assert drawn[0]["token"] == "<b>"
    assert drawn[1]["same"] is True


def test_the_answer_counts_by_hand():
    assert answer.computed(3, 48, None).plain == (
        "To write 48 tokens after 3 prompt tokens, 50 tokens run through the model with the KV cache, and 1,272 "
        "without it: 25.4 times as many."
    )  # 3 + 47; 48 · 3 + 48 · 47 ÷ 2
    weights = 2 * SMOL.parameters.matmul
    with_it, without = answer.operations(1, 2, SMOL)  # a prefill of one token, then one token, or both again
    assert with_it == pytest.approx(2 * weights, rel=0.01)
    head = 2 * SMOL.vocab_size * SMOL.hidden_size  # logits are computed for the last token alone
    assert without == pytest.approx(3 * weights - head, rel=0.01)


def test_the_picture_adds_up_what_the_answer_says():
    cached, uncached = answer.counted_plot(3, 48).payload()["points"]
    assert (cached["label"], uncached["label"]) == ("50", "1,272")
    paid = bill(race(3, [30.0, 10.0, 10.0], [30.0, 40.0, 50.0]), 3, SMOL)
    assert [point["label"] for point in answer.measured_plot(paid).payload()["points"]] == ["50.0 ms", "120 ms"]
    assert answer.measured(paid).plain.startswith("3 tokens took 50.0 ms with the KV cache and 120 ms without it: 2.4")
