"""The library's arithmetic and pictures, against numbers that can be checked on paper."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from engine.costs.paging import sessions_that_fit
from engine.errors import InvalidSettings
from engine.records import MemoryUse
from engine.shapes import NAMED, from_config, from_json, read
from engine.studies.key_records import KeyChange
from explorer.labs.kv_memory import answer, cache_pictures, figures, memory, pictures, queries
from explorer.labs.kv_memory.allocation import POLICIES, allocate, block_owners, read_lengths
from explorer.labs.kv_memory.capacity import Room
from explorer.labs.kv_memory.variants import kinds
from explorer.labs.model_choice import name_of
from explorer.pages.theme import PALETTES
from tests.explorer.labs.answers import answer_of, unfold

DARK = PALETTES["dark"]
LLAMA = NAMED["Llama 3.1 8B"].shape
GPT3 = NAMED["GPT-3 175B"].shape


# --- room ------------------------------------------------------------------------------------------------------


def test_52_sessions_of_8192_tokens_of_an_8b_model_fit_on_an_80_gb_card():
    room = Room(LLAMA, 80e9, 0.9, 2, 2)
    assert room.sequence(8192) == 131_072 * 8192
    assert room.sessions(8192) == 52 == sessions_that_fit(80e9, room.weights, 8192, 131_072, usable=0.9)


def test_15_sessions_of_4096_slots_of_gpt_3_fit_on_eight_such_cards_and_none_on_one():
    assert Room(GPT3, 640e9, 1.0, 2, 2).sessions(4096) == 15
    assert Room(GPT3, 80e9, 1.0, 2, 2).sessions(4096) == 0


def test_the_longest_context_is_the_last_whole_block_that_fits():
    room = Room(LLAMA, 80e9, 0.9, 2, 2)
    longest = room.longest(52)
    assert room.sessions(longest) >= 52 > room.sessions(longest + room.block)
    assert longest % room.block == 0
    assert Room(GPT3, 80e9, 1.0, 2, 2).longest(1) == 0


def test_a_sequence_takes_whole_blocks():
    assert Room(LLAMA, 80e9, 0.9, 2, 2, block=16).sequence(17) == 32 * 131_072


# --- kinds -----------------------------------------------------------------------------------------------------


def test_gqa_with_4_queries_a_key_head_takes_a_quarter_of_mha_and_8_times_mqa():
    own, mha, mqa = kinds(LLAMA)
    assert own.is_own and not mha.is_own and not mqa.is_own
    assert "4 query heads per KV head" in own.name
    per_token = [kind.shape.kv_bytes_per_token(2) for kind in (own, mha, mqa)]
    assert per_token == [131_072, 524_288, 16_384]


def test_mla_written_out_is_71_times_as_large():
    own, written_out, *_ = kinds(NAMED["DeepSeek-V3"].shape)
    assert own.shape.kv_bytes_per_token(2) == 70_272
    assert written_out.shape.kv_bytes_per_token(2) == 61 * 128 * (128 + 64 + 128) * 2
    assert written_out.shape.kv_bytes_per_token(2) / 70_272 == pytest.approx(71.1, abs=0.05)


def test_a_window_is_shown_beside_the_same_model_without_it():
    own, without, *_ = kinds(NAMED["Mistral 7B v0.1"].shape)
    assert (own.shape.kv_bytes(32_768, 2), without.shape.kv_bytes(32_768, 2)) == (536_870_912, 8 * 536_870_912)


def test_what_the_model_is_already_is_not_shown_twice():
    assert [kind.name for kind in kinds(GPT3)] == ["this model: MHA", "MQA: one KV head"]
    assert len(kinds(NAMED["Falcon 7B"].shape)) == 2


# --- allocation ------------------------------------------------------------------------------------------------


def test_three_policies_for_lengths_100_2000_and_4097():
    lengths = (100, 2000, 4097)
    found = {policy: allocate(policy, lengths, most=8192, block=16) for policy in POLICIES}
    assert found["reserve to the maximum"].slots == (8192, 8192, 8192)
    assert found["power of two"].slots == (128, 2048, 8192)
    assert found["paged"].slots == (7 * 16, 125 * 16, 257 * 16)
    assert found["paged"].wasted == 12 + 0 + 15
    assert found["power of two"].utilisation == pytest.approx(6197 / 10_368)


def test_paging_wastes_less_than_a_block_per_sequence_whatever_the_lengths():
    lengths = tuple(range(1, 101))
    for block in (1, 2, 16, 512):
        paged = allocate("paged", lengths, most=1, block=block)
        assert all(0 <= slots - length < block for slots, length in zip(paged.slots, lengths, strict=True))


def test_a_sequence_beyond_the_reservation_is_refused_in_words():
    with pytest.raises(InvalidSettings, match=r"4,097 tokens does not fit a reservation of 2,048"):
        allocate("reserve to the maximum", (100, 4097), most=2048, block=16)


def test_blocks_are_taken_in_turn_as_sequences_grow():
    assert block_owners((5, 2, 9), 4) == (0, 1, 2, 0, 2, 2)  # at token 0: all; at 4: the first and the last; at 8: last
    assert block_owners((), 4) == ()


@pytest.mark.parametrize("typed", ["37, 100 ,520", "37 100 520", "37;100;520"])
def test_lengths_are_read_as_people_type_them(typed):
    assert read_lengths(typed) == (37, 100, 520)


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("", "Type the sequences' lengths"),
        ("12, x", "got 'x'"),
        ("0", "from 1 to"),
        ("9999999999", "from 1 to"),
        ("1.5", "got '1.5'"),
        (" ".join(["7"] * 101), "At most 100"),
    ],
)
def test_lengths_that_cannot_be_are_refused_in_words(typed, words):
    with pytest.raises(InvalidSettings, match=words):
        read_lengths(typed)


# --- pictures --------------------------------------------------------------------------------------------------


def test_the_strips_end_where_the_memory_does():
    lengths = (100, 2000)
    found = [allocate(policy, lengths, most=2048, block=16) for policy in POLICIES]
    figure = pictures.strips(found, 10, DARK)
    ends = np.sum([trace.x for trace in figure.data], axis=0)
    assert ends.tolist() == [10 * 4096, 10 * (128 + 2048), 10 * (112 + 2000)]


def test_the_pool_has_a_cell_per_block_and_a_paler_one_where_it_is_not_full():
    (heat,) = pictures.pool((20, 16), 16, DARK).data
    assert list(heat.text[0]) == ["1", "2", "1"]
    assert heat.customdata[0][2] == "sequence 1: 4 of 16 slots filled"
    assert list(heat.z[0]) == [1, 3, 0]  # odd: full; sequence 1 is 0 and 1, sequence 2 is 2 and 3


def test_lines_of_the_calculator_are_the_formulas():
    figure = figures.bytes_by_context(kinds(LLAMA), 2, 8192, {"left": 5e10}, DARK)
    own = figure.data[0]
    assert dict(zip(own.x, own.y, strict=True))[8192] == 8192 * 131_072
    assert "32 layers × 2 × 8 heads × 128 × 2 B" in own.hovertemplate
    assert figure.layout.annotations[0].y == pytest.approx(math.log10(5e10)), "an axis in powers of ten"


def test_more_sessions_fit_in_fewer_bits_and_none_is_a_gap():
    rooms = {"bf16": Room(LLAMA, 80e9, 0.9, 2, 2), "q8_0": Room(LLAMA, 80e9, 0.9, 2, 1.0625)}
    bf16, q8, _ = figures.sessions_by_context(rooms, "bf16", 8192).data
    assert bf16.y[6] == 52 and q8.y[6] == 98  # (72e9 - 16.06e9) / (8192 x 69,632)
    assert bf16.y[-1] is None


def test_a_batch_is_weights_once_and_a_cache_each():
    room = Room(LLAMA, 80e9, 0.9, 2, 2)
    (line,) = figures.memory_by_batch(room, [1024], DARK).data
    assert line.y[3] == 16_060_522_496 + 8 * 1024 * 131_072


# --- the live cache --------------------------------------------------------------------------------------------

USE = MemoryUse(
    weight_bytes=1000,
    kv_live_bytes=90,
    kv_reserved_bytes=640,
    kv_formula_bytes=90,
    capture_bytes=50,
    process_bytes=5000,
    device_allocated_bytes=None,
)


def test_formula_and_tensors_agree_or_the_difference_is_explained():
    assert memory.verdict(USE) == "Formula and live tensors agree to the byte: 90 B."
    off = MemoryUse(1000, 180, 640, 90, 50, 5000, None)
    assert "the live tensors hold 90 B more (2.000 ×)" in memory.verdict(off)


def test_the_parts_of_the_process_add_up_to_it():
    found = memory.parts(USE, all_live=190, all_reserved=1280, shared=70)
    assert sum(part.size for part in found) == USE.process_bytes
    assert {part.name: part.size for part in found}["the rest"] == 5000 - 1000 - 1280 - 70 - 50


def test_a_window_that_is_not_full_saves_nothing_and_is_not_spoken_of():
    gemma = NAMED["Gemma 3 1B"].shape
    assert memory.window_words(gemma, 512, 0, 2) == ""
    assert "22 of 26 layers only look back 512 tokens" in memory.window_words(gemma, 513, 0, 2)


def test_queries_would_take_as_many_heads_as_ask():
    assert queries.query_bytes_per_token(NAMED["SmolLM2-135M"].shape, 4) == 30 * 9 * 64 * 4
    assert queries.query_formula(NAMED["SmolLM2-135M"].shape, 4) == "30 layers × 9 query heads × 64 × 4 B"


def test_every_step_reads_all_keys_so_far_and_only_its_own_queries():
    keys, asked = cache_pictures.reads(prompt=3, steps=3)
    assert keys.tolist() == [[1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]
    assert asked.tolist() == [[1, 1, 1, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 1]]
    assert (asked.sum(0) == 1).all(), "each query is read by one step and never again"


def change(layer_0_moves: float = 0.0) -> KeyChange:
    moved = np.full((2, 2, 3), 0.25, np.float32)
    moved[:, 0, 1:] = layer_0_moves
    return KeyChange(0, 5, 6, (5, 7, 8), moved, moved == 0, np.full((2, 2, 3), 1e-7, np.float32))


def test_what_moved_is_said_in_numbers():
    words = cache_pictures.moved_words(change(), 0)
    assert words.startswith("Layer 0: all 2 later keys are the same to the last bit.")
    assert "every one of the 2 moved, by 0.25 to 0.25" in words
    assert "none by more than 1.0e-07: that is rounding" in words
    assert "Layer 0: 0 of 2 later values are the same to the last bit, none moved by more than 3.0e-08" in (
        cache_pictures.moved_words(change(3e-8), 1)
    )


def test_keys_that_kept_every_bit_are_left_empty_and_labels_are_text():
    (heat,) = cache_pictures.moved(change(), ["a", "&lt;b&gt;", "c"], 0, DARK).data
    assert np.isnan(np.array(heat.z, float)[0, 1:]).all()
    assert np.array(heat.z, float)[1].tolist() == [0.25, 0.25, 0.25]
    assert heat.text[0][1] == "not a bit differs"


# --- the page --------------------------------------------------------------------------------------------------


def test_a_pasted_config_is_cut_to_what_its_shape_depends_on():
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 128,
        "vocab_size": 300,
        "hidden_act": "silu",
        "rope_theta": 10_000.0,
        "torch_dtype": "bfloat16",
        "use_cache": True,
    }
    kept = read(config).essential
    assert from_config(kept) == from_config(config)
    assert not {"hidden_act", "rope_theta", "torch_dtype", "use_cache", "architectures"} & set(kept)
    for name in kept:
        assert name in config


def library() -> None:
    from explorer.labs.kv_memory.page import page

    page()


def opened(**asked: str) -> AppTest:
    page = AppTest.from_function(library, default_timeout=60)
    page.query_params.update(asked)
    page.run()
    assert not page.exception
    return page


def words(page: AppTest) -> str:
    return "\n".join(element.value for element in page.text)


@pytest.mark.usefixtures("app_server")
def test_the_page_calculates_what_its_link_asks_for():
    page = opened(model="GPT-3 175B", ctx="2,048", kv="fp16", w="fp16", on="another amount", gb="640", use="1")
    assert answer_of(page) == (
        "GPT-3 175B keeps 4.72 MB per token: a conversation of 2,048 tokens takes 9.66 GB, "
        "and 30 of them fit on 640 GB of memory beside the weights."
    )  # 2 · 96 layers · 12,288 wide · 2 B = 4,718,592 B; × 2,048 = 9.66 GB; ⌊(640 − 349 GB) ÷ 9.66 GB⌋ = 30
    assert not page.get("plotly_chart"), "what is folded is not drawn"
    unfold(page, "kv_fit", "kv_batch", "kv_paging")
    assert len(page.get("plotly_chart")) == 4  # two of the calculator, two of allocation


def test_the_answer_counts_bytes_and_sessions_of_the_8b_by_hand():
    room = Room(NAMED["Llama 3.1 8B"].shape, 80e9, 0.9, 2, 2)
    assert answer.sentence("Llama 3.1 8B", room, 8192, "one H100 SXM").plain == (
        "Llama 3.1 8B keeps 131 kB per token: a conversation of 8,192 tokens takes 1.07 GB, "
        "and 52 of them fit on one H100 SXM beside the weights."
    )  # 2 · 32 · 8 · 128 · 2 B = 131,072; × 8,192 = 1.0737 GB; (72 − 16.06) ÷ 1.0737 = 52.1
    assert "The longest that does has 426,784 tokens." in (
        answer.sentence("Llama 3.1 8B", room, 1_048_576, "one H100 SXM").plain
    )  # (72 − 16.0605 GB) ÷ 131,072 B = 426,784.3 tokens, and 426,784 is 26,674 blocks of 16


def test_the_bar_holds_the_memory_whole_and_the_dot_stands_on_its_curve():
    room = Room(NAMED["Llama 3.1 8B"].shape, 80e9, 0.9, 2, 2)
    (bar,) = answer.memory_bar(room, 8192, "here").payload()["rows"]
    shares = [part["share"] for part in bar["parts"]]
    assert shares[:2] == pytest.approx([16.0605 / 80, 52 * 1.07374 / 80], abs=1e-4)
    assert sum(shares) == pytest.approx(1, abs=1e-4)
    plot = answer.by_length(room, 8192, kinds(room.shape)).payload()
    assert plot["points"][0]["at"] in plot["lines"][0]["at"]


@pytest.mark.usefixtures("app_server")
def test_weights_that_do_not_fit_are_said_so():
    assert "more than the 72.0 GB that may be used" in answer_of(opened(model="Llama 3.1 70B"))


@pytest.mark.usefixtures("app_server")
def test_a_pasted_config_is_computed_and_a_bad_one_names_the_field_and_the_fix():
    config = json.dumps({**NAMED["Llama 3.2 1B"].config, "use_cache": True})
    page = opened(**{"from": "a config"})
    page.text_area[0].set_value(config).run()
    assert "keeps 32.8 kB per token" in answer_of(page)
    assert from_json("".join(page.query_params["config"])) == NAMED["Llama 3.2 1B"].shape
    page.text_area[0].set_value('{"model_type": "llama", "num_hidden_layers": 2}').run()
    assert not page.exception
    assert "hidden_size" in words(page)


HYBRID = {
    "model_type": "qwen3_next",
    "num_hidden_layers": 48,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "hidden_size": 2048,
    "vocab_size": 151_936,
    "full_attention_interval": 4,
}


@pytest.mark.usefixtures("app_server")
def test_a_hybrid_shows_its_cache_and_says_what_is_not_counted():
    page = opened(**{"from": "a config", "config": json.dumps(HYBRID), "ctx": "8,192"})
    assert answer_of(page).endswith("keeps 24.6 kB per token: a conversation of 8,192 tokens takes 201 MB.")
    assert next(iter(unfold(page, "kv_numbers").table[0].value["bytes"])) == "24,576"
    assert "36 of 48 layers keep a state in place of keys and values" in words(page)
    assert "How many sessions fit is not computed" in words(page)


@pytest.mark.usefixtures("app_server")
def test_a_doubt_stands_above_the_numbers_and_none_is_to_the_byte():
    config = {**NAMED["Llama 3.1 8B"].config, "num_kv_shared_layers": 4}
    page = opened(**{"from": "a config", "config": json.dumps(config)})
    assert "keeps ≈ 131 kB per token" in answer_of(page)
    assert next(iter(unfold(page, "kv_numbers").table[0].value["bytes"])).startswith("Not exact: ")
    assert "num_kv_shared_layers: not known of a llama" in words(page)
    assert "131,072 B per token" not in "".join(caption.value for caption in page.caption)


@pytest.mark.usefixtures("app_server")
def test_a_type_that_is_not_known_is_refused_where_a_field_may_say_what_is_cached():
    config = {**NAMED["Llama 3.1 8B"].config, "model_type": "https://evil.example", "attn_period": 3}
    page = opened(**{"from": "a config", "config": json.dumps(config)})
    assert "attn_period may say what its layers cache" in words(page)
    assert not page.markdown, "there is no answer"


@pytest.mark.parametrize(
    ("config", "name"),
    [
        ({"_name_or_path": "meta-llama/Llama-3.1-8B"}, "meta-llama/Llama-3.1-8B"),
        ({"model_type": "llama"}, "Pasted llama"),
        ({"model_type": "https://evil.example"}, "Pasted config"),
        ({"_name_or_path": "www.evil.example/x", "model_type": "www.evil.example"}, "Pasted config"),
        ({"_name_or_path": 5, "model_type": ["x"]}, "Pasted config"),
    ],
)
def test_a_pasted_model_is_called_what_it_calls_itself_unless_that_is_an_address(config, name):
    assert name_of(config) == name


@pytest.mark.usefixtures("app_server")
def test_a_link_with_a_config_shows_it():
    config = json.dumps(dict(NAMED["Llama 3.2 1B"].config))
    assert "keeps 32.8 kB per token" in answer_of(opened(**{"from": "a config", "config": config}))


@pytest.mark.usefixtures("app_server")
def test_a_long_sequence_leaves_out_the_reservation_and_says_why():
    assert "does not fit a reservation of 2,048" in words(opened(lens="100, 5000"))


@pytest.mark.usefixtures("app_server")
def test_the_live_part_shows_three_numbers_that_agree_and_moves_keys():
    page = opened(**{"from": "the loaded model", "of": "the engine's live sessions"})
    assert "No model is loaded in this tab yet" in words(page)
    page.button(key="prefill_here").click().run()
    assert not page.exception
    per_token = 2 * 2 * 2 * 16 * 4  # key and value, 2 layers, 2 heads, 16 wide, 4 bytes
    assert f"agree to the byte: {11 * per_token:,} B" in words(page)
    assert "paged: 5 of 16 slots empty" in words(page)
    unfold(page, "kv_moved").button(key="moved keys_begin").click().run()
    for _ in range(20):
        if "Layer 0" in words(page):
            break
        page.run()
    assert "Layer 0: all 10 later keys are the same to the last bit." in words(page)
    assert not page.exception
