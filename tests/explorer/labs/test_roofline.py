"""Lab "the floor": its arithmetic by hand, its figures as data, its page on a tiny model."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from engine.config import EngineConfig
from engine.costs.bytes import prefill_bytes, streamed_parameters
from engine.measure.hardware import HARDWARE
from engine.shapes import NAMED, from_config
from explorer.hosting import runtime
from explorer.labs.kv_memory.variants import kinds
from explorer.labs.progress import Stopped
from explorer.labs.roofline import answer, example, figures, levers
from explorer.labs.roofline.curves import batch_curve
from explorer.labs.roofline.levers import bars, move
from explorer.labs.roofline.lower_bounds import (
    ATTENTIONS,
    Levers,
    Rates,
    devices_to_hold,
    floor_of,
    published,
    with_attention,
)
from explorer.labs.roofline.points import computed_points, measured_points
from explorer.labs.roofline.tables import bar_rows, curve_rows, pair_rows, pair_says, point_rows
from explorer.labs.roofline.two_precisions import Pair, PrecisionRun, run_both
from explorer.pages.theme import PALETTES
from tests.engine.architectures import loaded, tiny_engine, tiny_model
from tests.engine.quick_machine import measure_quickly
from tests.explorer.labs.answers import answer_of, unfold

LARGE, H100 = NAMED["Llama 3.1 70B"].shape, published(HARDWARE["H100 SXM"])
COLOURS = PALETTES["dark"]
MULTIPLIED = 70_553_706_496 - 128_256 * 8192  # the input embedding is looked up


def test_a_70b_step_reads_its_weights_and_its_cache_at_full_bandwidth():
    floor = floor_of(LARGE, H100, 2048, Levers())
    moved = 2 * MULTIPLIED + 2049 * 327_680
    assert floor.moved == moved
    assert floor.token_s == floor.memory_s == moved / 3.35e12
    assert floor.bound == "memory"
    assert floor.rate == 1 / floor.token_s
    assert devices_to_hold(floor, H100) == 2  # 141 GB and 80 GB


@pytest.mark.parametrize(
    ("lever", "amounts", "times"),
    [
        ("weights", Levers(weights="int8"), (MULTIPLIED + 2049 * 327_680) / (2 * MULTIPLIED + 2049 * 327_680)),
        ("devices", Levers(devices=8), 1 / 8),
        ("batch", Levers(batch=2), (2 * MULTIPLIED + 2 * 2049 * 327_680) / (2 * MULTIPLIED + 2049 * 327_680)),
    ],
)
def test_a_lever_alone_moves_the_floor_by_its_bytes(lever, amounts, times):
    found = {bar.name: bar for bar in bars(LARGE, H100, 2048, Levers(), amounts, frozenset())}
    assert found[lever].floor.token_s / found["nothing moved"].floor.token_s == pytest.approx(times)
    assert not found[lever].on
    assert "all switched on" not in found


def test_levers_together_are_those_that_are_on():
    amounts = Levers(weights="q4_0", devices=8, batch=64, attention="latent")
    on = frozenset({"weights", "devices"})
    assert move(Levers(), amounts, on) == Levers(weights="q4_0", devices=8)
    together = bars(LARGE, H100, 2048, Levers(), amounts, on)[-1]
    assert (together.name, together.said) == ("all switched on", "weights q4_0, 8 devices")
    assert together.floor == floor_of(LARGE, H100, 2048, Levers(weights="q4_0", devices=8))


def test_speculation_divides_a_round_by_its_tokens():
    plain = floor_of(LARGE, H100, 2048, Levers())
    drafted = floor_of(LARGE, H100, 2048, Levers(drafted=4, acceptance=0.8, draft_cost=0.05))
    one_pass = (plain.moved + 4 * 327_680) / 3.35e12  # four more tokens' keys and values are written
    assert drafted.token_s == pytest.approx(one_pass * 1.2 / 3.3616)


def test_other_attention_changes_the_cache_and_nothing_that_cannot():
    per_token = {kind: with_attention(LARGE, kind).kv_elements_per_token for kind in ("as built", "one key head")}
    assert per_token["as built"] == 8 * per_token["one key head"]
    many = with_attention(LARGE, "a key head per query head")
    assert many.kv_elements_per_token == 8 * LARGE.kv_elements_per_token
    latent = with_attention(LARGE, "latent")
    assert latent.kv_elements_per_token == 80 * (4 * 128 + 64)
    assert with_attention(LARGE, "groups of 8").num_kv_heads == 8
    assert latent.parameters.mlp_per_layer == LARGE.parameters.mlp_per_layer


def test_without_a_published_peak_only_memory_bounds():
    phone = published(HARDWARE["Phone, Snapdragon 8 Gen 3"])
    floor = floor_of(NAMED["Llama 3.2 1B"].shape, phone, 512, Levers(batch=512))
    assert floor.compute_s is None
    assert floor.bound == "memory"
    assert devices_to_hold(floor, phone) is None
    curve = batch_curve(NAMED["Llama 3.2 1B"].shape, phone, 512, Levers())
    assert curve.strict == ()
    assert "strict" not in "".join(curve_rows(curve)[0])
    assert len(figures.batch_curves(curve, COLOURS).data) == 1


def test_points_lie_on_or_under_the_roof():
    for point in computed_points(LARGE, H100, 2048, Levers()):
        roof = min(989.4e12, point.intensity * 3.35e12)
        assert point.rate == pytest.approx(roof)
    names = [row["what"] for row in point_rows(computed_points(LARGE, H100, 2048, Levers()))]
    assert names[0] == "decode, batch 1"
    assert names[-1] == "prefill, 8,192 tokens"


def test_a_long_prompt_does_more_per_byte_than_a_step():
    decode, *_, prefill = computed_points(LARGE, H100, 2048, Levers())
    assert decode.intensity < 2
    assert prefill.intensity > 1000
    assert prefill.moved == prefill_bytes(LARGE, 8192, weight_dtype_bytes=2, kv_dtype_bytes=2)


def test_the_roof_bends_at_the_ridge():
    figure = figures.roofline(computed_points(LARGE, H100, 2048, Levers()), H100, Levers(), COLOURS)
    roof = figure.data[0]
    assert max(roof.y) == 989.4e12
    assert 989.4e12 / 3.35e12 in roof.x
    assert figure.layout.xaxis.type == figure.layout.yaxis.type == "log"
    assert {trace.name for trace in figure.data[1:]} == {"decode, computed", "prefill, computed"}


def test_measured_points_are_the_steps_that_were_alone():
    engine = tiny_engine()
    try:
        session = engine.create_session()
        session.prefill(tuple(range(10, 20))).result()
        session.step().result()
        shared = replace(session.step().result(), batch_size=2)
        untimed = replace(shared, batch_size=1, timing=None)
        shape = engine.info.shape
        points = measured_points((*session.records[:2], shared, untimed), shape, 4)
        assert [point.phase for point in points] == ["prefill", "decode"]
        record = session.records[1]
        assert points[1].seconds == record.timing.forward_ms * 1e-3
        assert points[1].moved == 4 * (shape.parameters.matmul + 11 * shape.kv_elements_per_token)
    finally:
        engine.close()


def test_a_bar_says_what_it_waits_for():
    found = bars(LARGE, H100, 2048, Levers(), Levers(batch=1024), frozenset({"batch"}))
    figure = figures.lever_bars(found, "time", COLOURS)
    assert list(figure.data[0].x) == [bar.floor.token_s * 1e3 for bar in found]
    assert list(figures.lever_bars(found, "rate", COLOURS).data[0].x) == [bar.floor.rate for bar in found]
    assert "memory-bound" in figure.data[0].hovertext[0]
    assert bar_rows(found)[-1]["lever"] == "all switched on"
    assert set(levers.FIELDS) <= {bar.name for bar in found}


def test_the_batch_at_which_linear_layers_turn_is_drawn():
    curve = batch_curve(LARGE, H100, 2048, Levers())
    assert curve.critical == 296  # the first above 989.4e12 ÷ 3.35e12 = 295.34
    assert curve.context == pytest.approx(1476, abs=1)
    figure = figures.batch_curves(curve, COLOURS)
    assert figure.data[-1].name == "linear layers are compute-bound from batch 296"
    assert all(strict <= general * (1 + 1e-9) for strict, general in zip(curve.strict, curve.general, strict=True))


@pytest.mark.parametrize(
    ("name", "batch"), [("DeepSeek-V3", 5404), ("DeepSeek-V2", 3332), ("Qwen3 30B-A3B", 2935), ("Mixtral 8x7B", 1079)]
)
def test_a_mixture_turns_where_its_arithmetic_takes_as_long_as_the_weights_it_reads(name, batch):
    """Attention and head are not spread over experts, so it turns before count ÷ active times the dense batch."""
    shape = NAMED[name].shape
    assert batch_curve(shape, H100, 512, Levers()).critical == batch

    def arithmetic_over_reading(tokens: int) -> float:
        reading = 2 * streamed_parameters(shape, tokens=tokens) / 3.35e12
        return (2 * tokens * shape.parameters.matmul / 989.4e12) / reading

    assert arithmetic_over_reading(batch - 1) < 1 <= arithmetic_over_reading(batch)


def test_windows_count_in_the_context_that_keeps_a_step_waiting_for_memory():
    """Half of gpt-oss's layers read 128 keys at most: 12·(c + 128) keys are as many as 24·511 when c is 894 or so."""
    config = {
        "model_type": "gpt_oss",
        "num_hidden_layers": 24,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "hidden_size": 2880,
        "intermediate_size": 2880,
        "vocab_size": 201_088,
        "num_local_experts": 32,
        "num_experts_per_tok": 4,
        "sliding_window": 128,
    }
    shape = from_config(config)
    assert batch_curve(shape, H100, 512, Levers()).context == 892
    assert batch_curve(replace(shape, window=None), H100, 512, Levers()).context == pytest.approx(511, abs=2)


def test_the_attention_lever_and_the_memory_lab_have_one_number_for_one_cache():
    model = NAMED["DeepSeek-V3"].shape
    bytes_each = {kind: with_attention(model, kind).kv_bytes_per_token(2) for kind in ATTENTIONS}
    assert bytes_each["latent"] == model.kv_bytes_per_token(2) == 61 * (512 + 64) * 2 == 70_272
    assert bytes_each["a key head per query head"] == 61 * 128 * (192 + 128) * 2 == 4_997_120
    ways = {kind.name: kind.shape.kv_bytes_per_token(2) for kind in kinds(model)}
    assert ways["MLA's keys and values written out"] == bytes_each["a key head per query head"]
    assert ways["MQA: one KV head"] == bytes_each["one key head"]


def test_a_point_of_the_roofline_follows_the_lever():
    moved = Levers(attention="one key head")
    point = computed_points(LARGE, H100, 32_768, moved)[0]
    assert point.moved == floor_of(LARGE, H100, 32_768, moved).moved == pytest.approx(138.0e9, abs=0.05e9)


def test_one_card_does_not_hold_70b_in_bf16():
    bf16, fp8, int4 = example.one_card_rows()
    assert bf16["left for caches"] == "does not fit"
    assert fp8["left for caches"] == "9.45 GB"
    assert float(int4["lower bound of a step"].split()[0]) == pytest.approx(69.503033344 * 0.5625 / 3.35, abs=0.05)


def test_the_books_example_is_worked_out_with_every_input():
    small, large = example.book_results()
    assert (small["step"], large["step"]) == ("2.54 ms", "20.9 ms")
    assert large["share of caches"] == "77%"
    assert (small["tokens/s in all"], large["tokens/s in all"]) == ("1,577", "12,274")
    assert "at batch 120" in example.book_says()
    assert "Above 2,497 tokens" in example.book_says()
    assert len(example.book_inputs()) == 9


# --- both formats, really stepped ---------------------------------------------------------------------------------


def second_engine(config: EngineConfig, progress):
    from engine.llm_engine import LLMEngine

    assert config.dtype == "bfloat16"
    progress("Reading weights", 0.5)
    made = loaded(tiny_model("llama").bfloat16())
    return LLMEngine(
        replace(made, info=replace(made.info, dtype="bfloat16", weight_bytes=made.info.weight_bytes)), config
    )


@pytest.fixture
def quick_machine(monkeypatch):
    measure_quickly(monkeypatch, (64,))


def test_both_formats_step_the_same_prompt_and_the_second_engine_is_closed(quick_machine):
    engine, made = tiny_engine(), []

    def start(config, progress):
        made.append(second_engine(config, progress))
        return made[-1]

    told, held = [], []
    create = engine.create_session
    engine.create_session = lambda **how: held.append(create(**how)) or held[-1]  # so that none goes by itself
    try:
        pair = run_both(engine, start, EngineConfig(fast_kernels=False), "abc", 5, lambda *a: told.append(a))
        assert [run.dtype for run in pair.runs] == ["float32", "bfloat16"]
        assert [len(run.forward_ms) for run in pair.runs] == [5, 5]
        assert len(pair.runs[0].token_ids) == 6
        assert pair.runs[1].weight_bytes * 2 == pair.runs[0].weight_bytes
        assert pair.runs[1].kv_bytes * 2 == pair.runs[0].kv_bytes
        greedy = engine.create_session(sampling=example_greedy())
        greedy.prefill(engine.tokenizer.encode("abc")).result()
        assert greedy.records[0].emitted_ids[0] == pair.runs[0].token_ids[0]
        assert len(held) == 2
        assert len(engine.sessions) == 1, "the comparison's own session was closed"
        assert not made[0].is_alive
        assert told[-1][0] == 104
        assert len(pair_rows(pair)) == 6
        assert len(figures.precision_steps(pair, COLOURS).data) == 4
    finally:
        engine.close()


def example_greedy():
    from engine.config import SamplingParams

    return SamplingParams(temperature=0.0)


def test_a_comparison_that_is_stopped_shows_the_steps_that_were_made(quick_machine):
    engine = tiny_engine()

    def report(done: int, total: int, words: str = "") -> None:
        if done >= 102:
            raise Stopped("Stopped.")

    try:
        pair = run_both(engine, second_engine, EngineConfig(fast_kernels=False), "abc", 50, report)
        assert len(pair.runs[0].forward_ms) == 2
    finally:
        engine.close()


def test_where_the_two_texts_part_is_said():
    first = PrecisionRun("float32", (1, 2, 3), (10.0, 12.0), 400, 40, 1e9, 8.0)
    second = replace(
        first, dtype="bfloat16", token_ids=(1, 9, 3), forward_ms=(5.0, 5.0), weight_bytes=200, floor_ms=4.0
    )
    pair = Pair((first, second), "p", {1: "a", 2: "b", 3: "c", 9: "z"})
    size, above, tokens = pair_says(pair)
    assert "0.50 of the weights' bytes" in size
    assert "2.20 times as fast" in size
    assert "float32 1.38 times its lower bound" in above
    assert "No step can beat" not in above
    hurried = replace(second, floor_ms=6.0)
    assert "No step can beat its lower bound" in pair_says(Pair((first, hurried), "p", pair.pieces))[1]
    assert "The first 1 of 3 tokens are the same. At step 1 float32 sampled “b” and bfloat16 “z”" in tokens
    assert "All 3 tokens are the same." in pair_says(Pair((first, first), "p", pair.pieces))[2]


# --- the page -----------------------------------------------------------------------------------------------------


def floor_page() -> None:
    from explorer.labs.roofline.page import page

    page()


def opened(**asked: str) -> AppTest:
    page = AppTest.from_function(floor_page, default_timeout=60)
    page.query_params.update(asked)
    page.run()
    assert not page.exception
    return page


def texts(page: AppTest) -> str:
    return "\n".join(element.value for element in page.text)


def measured_here(page: AppTest) -> None:
    """Press the button and wait for its result, however busy this machine is."""
    page.button(key="machine_begin").click().run()
    for _ in range(200):
        if any(metric.label == "reads, best" for metric in page.metric):
            break
        time.sleep(0.1)
        page.run()
    assert not page.exception


def test_the_page_opens_without_a_model_and_loads_none(app_server):
    page = opened()
    assert "This roofline needs a run" in texts(page)
    assert not runtime.runtime().pool._loadings
    assert answer_of(page) == (
        "One decode step of Llama 3.1 70B on one H100 SXM cannot take less than 41.7 ms: "
        "it is memory-bound, and uses only 0.3 % of the compute. Its weights and caches need the memory of 2 of them."
    )
    assert not page.get("plotly_chart"), "what is folded is not drawn"


def test_the_answer_of_the_70b_by_hand():
    shape, rates = NAMED["Llama 3.1 70B"].shape, published(HARDWARE["H100 SXM"])
    floor = floor_of(shape, rates, 2048, Levers())
    # 139.0 GB of weights and 0.67 GB of cache at 3.35 TB/s. Read are 80 layers of
    # 8192·(2·8192 + 2·1024 + 3·28672) and the head of 8192·128256, in two bytes each.
    weights = 2 * (80 * 8192 * (2 * 8192 + 2 * 1024 + 3 * 28_672) + 8192 * 128_256)
    cache = 2 * 80 * 8 * 128 * 2 * 2049  # 2,048 tokens read and one written
    assert floor.token_s == pytest.approx((weights + cache) / 3.35e12, rel=1e-3)
    used = (weights + 4 * 80 * 8192 * 2049) / 989.4e12 / floor.token_s  # two operations a weight, four a score
    assert used == pytest.approx(0.0034, abs=1e-4)
    said = answer.sentence("it", floor, rates, Levers()).plain
    assert "41.7 ms" in said and "only 0.3 % of the compute" in said


def test_the_answer_says_when_arithmetic_bounds_a_step_and_what_was_moved():
    shape, rates = NAMED["Llama 3.1 8B"].shape, published(HARDWARE["H100 SXM"])
    levers_of = Levers(batch=1024)
    said = answer.sentence("it", floor_of(shape, rates, 128, levers_of), rates, levers_of, "batch 1024").plain
    assert said.startswith("One decode step of it on one H100 SXM (batch 1024) cannot take less than")
    assert "it is compute-bound, and uses only" in said and "of the bandwidth." in said


def test_every_step_stands_on_the_roof_at_its_own_intensity():
    shape, rates = NAMED["Llama 3.1 8B"].shape, published(HARDWARE["H100 SXM"])
    points = computed_points(shape, rates, 2048, Levers())
    plot = answer.roofline(points, rates, Levers(), named=("decode, batch 1",)).payload()
    assert [dot["label"] for dot in plot["points"] if dot["label"]] == ["decode, batch 1"]
    roof = plot["lines"][0]["at"]
    for x, y in (dot["at"] for dot in plot["points"]):
        left, right = max(p for p in roof if p[0] <= x), min(p for p in roof if p[0] >= x)
        slope = (right[1] - left[1]) / (right[0] - left[0]) if right != left else 0
        assert y == pytest.approx(left[1] + slope * (x - left[0]), abs=2e-3)


def test_a_link_sets_model_hardware_and_levers(app_server):
    page = opened(model="GPT-2", on="TPU v5e", ctx="512", w_on="true", w="int8", d_on="true", d="4")
    assert "on 4 × TPU v5e (weights int8, 4 devices)" in answer_of(page)
    (bars_chart,) = (c for c in page.get("plotly_chart") if "Time per token" in c.proto.alt)
    spec = json.loads(bars_chart.proto.spec)
    assert "all switched on" in spec["data"][0]["y"][-1]
    assert "weights int8, 4 devices" in spec["data"][0]["y"][-1]


def test_folding_the_levers_leaves_them_and_the_answer_as_they_are(app_server):
    page = unfold(opened(model="GPT-2", on="TPU v5e"), "roof_levers")
    page.toggle(key="d_on").set_value(True).run()
    page.session_state["roof_levers"] = False
    page.run()
    assert "on 8 × TPU v5e (8 devices)" in answer_of(page)
    assert not page.get("plotly_chart"), "no chart of a folded part is drawn"


def test_a_model_that_cannot_be_read_leaves_the_rest_of_the_page(app_server):
    page = opened(**{"from": "a config"})
    assert "There is no config here yet" in texts(page)
    page.text_area(key="pasted_config").set_value('{"model_type": "llama", "hidden_size": 64}').run()
    assert not page.exception
    assert "The config has no num_hidden_layers" in texts(page)
    page.text_area(key="pasted_config").set_value(json.dumps(dict(NAMED["GPT-2"].config))).run()
    unfold(page, "roof_numbers")
    assert ("million parameters", "124") in [(metric.label, metric.value) for metric in page.metric]


def test_a_model_of_which_only_the_cache_is_known_has_no_floor_and_says_so(app_server):
    config = {
        "model_type": "qwen3_next",
        "num_hidden_layers": 48,
        "num_attention_heads": 16,
        "num_key_value_heads": 2,
        "head_dim": 256,
        "hidden_size": 2048,
        "vocab_size": 151_936,
    }
    page = opened(**{"from": "a config", "config": json.dumps(config)})
    assert "Pasted qwen3_next: Only the cache of this architecture is known here" in texts(page)


def test_a_doubtful_model_has_its_floor_below_the_doubt(app_server):
    config = {**NAMED["Llama 3.1 8B"].config, "model_type": "brandnew"}
    page = opened(**{"from": "a config", "config": json.dumps(config)})
    assert "model_type 'brandnew' is not known here: read like a Llama" in texts(page)


def test_the_loaded_model_is_priced_as_it_is_loaded(app_server, quick_machine):
    page = opened()
    page.button(key="prefill_here").click().run()
    measured_here(page)
    page.session_state["from"] = "the loaded model"
    page.selectbox(key="on").set_value("This machine").run()
    unfold(page, "roof_levers")
    (chart,) = (c for c in page.get("plotly_chart") if "Time per token" in c.proto.alt)
    assert "weights fp32, cache fp32" in json.loads(chart.proto.spec)["data"][0]["y"][0]


def test_a_measured_run_stands_on_the_roofline_of_this_machine(app_server, quick_machine):
    page = opened()
    page.button(key="prefill_here").click().run()
    measured_here(page)
    (chart,) = (c for c in page.get("plotly_chart") if "this machine" in c.proto.alt)
    spec = json.loads(chart.proto.spec)
    assert "prefill, measured" in [trace.get("name") for trace in spec["data"]]


def test_a_class_measures_nothing_and_loads_no_second_model(app_server, monkeypatch):
    monkeypatch.setenv("LOUPE_MODE", "hosted")
    page = opened()
    page.button(key="prefill_here").click().run()
    unfold(page, "roof_precisions")
    assert "measuring the machine would slow everybody down" in texts(page)
    assert "a second model is not loaded here" in texts(page)
    assert not [button for button in page.button if button.key in ("machine_begin", "precisions_begin")]


def test_a_rate_measured_here_serves_every_format():
    here = Rates("This machine", 2e10, {"fp32": 6e10}, None, "measured", measured=True)
    assert here.peak("q4_0") == here.peak("bf16") == 6e10
