"""The online softmax: values on paper, float64, torch's own attention, and the row that the Step page shows."""

from __future__ import annotations

import math
from functools import reduce

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from engine.config import SamplingParams
from engine.errors import InvalidSettings, NotPrefilled, UnknownHead, UnknownLayer, UnknownStep, UnsupportedModel
from engine.studies.head_reader import read_head
from engine.tiles import HeadInputs, exact, merge, nothing_yet, partial_of, two_passes, walk, weights64
from tests.engine.architectures import tiny_engine

PROMPT = tuple(range(40, 61))


def scored(scores: list[float], values: list[float], *, sink: float | None = None) -> HeadInputs:
    """A head whose scores and values are these: query 1, keys the scores, width 1."""
    keys, rows = (np.array(given, np.float32)[:, None] for given in (scores, values))
    return HeadInputs(np.ones(1, np.float32), keys, rows, 1.0, None, sink, np.ones(len(scores), np.bool_))


def random_head(num_keys: int = 37, spread: float = 3.0) -> HeadInputs:
    random = np.random.default_rng(5)
    query, keys, values = (random.normal(size=s).astype(np.float32) for s in ((16,), (num_keys, 16), (num_keys, 8)))
    return HeadInputs(query, keys * np.float32(spread), values, 0.25, None, None, np.ones(num_keys, np.bool_))


@pytest.mark.parametrize(
    ("scores", "values", "expected"),
    [
        ([0.0, math.log(2)], [0.0, 3.0], 2.0),  # weights 1/3 and 2/3
        ([0.0, 0.0], [1.0, 3.0], 2.0),  # the mean
        ([1000.0, 0.0], [5.0, 7.0], 5.0),  # e^1000 overflows where the maximum is not taken off
        ([0.0, 1000.0], [5.0, 7.0], 7.0),  # and the other way round: everything summed before is scaled to nothing
    ],
)
@pytest.mark.parametrize("tile_size", [1, 2])
def test_tiles_of_two_scores_as_on_paper(scores, values, expected, tile_size):
    inputs = scored(scores, values)
    assert walk(inputs, tile_size)[-1].after.divided == pytest.approx([expected], abs=1e-6)
    assert exact(inputs) == pytest.approx([expected], abs=1e-6)
    assert two_passes(inputs) == pytest.approx([expected], abs=1e-6)


def test_two_partials_merge_by_the_formula():
    first = partial_of(np.array([1.0, 3.0]), np.array([[2.0], [4.0]]))
    second = partial_of(np.array([5.0]), np.array([[10.0]]))
    both = merge(first, second)
    assert (first.largest, second.largest, both.largest) == (3.0, 5.0, 5.0)
    assert both.total == pytest.approx(math.exp(-4) + math.exp(-2) + 1)
    assert both.output == pytest.approx([2 * math.exp(-4) + 4 * math.exp(-2) + 10])
    assert merge(second, first).output == pytest.approx(both.output)


def test_partials_merge_in_any_order_to_the_same():
    inputs = random_head()
    scores, values = inputs.scores().astype(np.float64), inputs.values.astype(np.float64)
    parts = [partial_of(scores[i : i + 8], values[i : i + 8]) for i in (24, 0, 32, 16, 8)]
    assert reduce(merge, parts).divided == pytest.approx(exact(inputs), rel=1e-5)
    assert reduce(merge, parts[::-1]).divided == pytest.approx(reduce(merge, parts).divided, rel=1e-12)


def test_what_was_summed_is_scaled_down_only_when_a_larger_score_comes():
    tiles = walk(scored([1.0, 3.0, 2.0, 3.0 + math.log(2)], [1.0, 1.0, 1.0, 1.0]), 1)
    assert [tile.after.largest for tile in tiles] == pytest.approx([1.0, 3.0, 3.0, 3.0 + math.log(2)])
    assert [tile.rescale for tile in tiles] == pytest.approx([1.0, math.exp(-2), 1.0, 0.5])
    assert tiles[1].after.total == pytest.approx(1 + math.exp(-2))


@pytest.mark.parametrize("tile_size", [1, 2, 5, 36, 37, 1000])
def test_every_tile_size_gives_the_float64_output_to_float32_rounding(tile_size):
    inputs = random_head()
    tiles = walk(inputs, tile_size)
    assert [tile.start for tile in tiles] == list(range(0, 37, tile_size))
    assert tiles[-1].end == 37
    assert np.abs(tiles[-1].after.divided - exact(inputs)).max() < 2e-6
    assert np.abs(two_passes(inputs) - exact(inputs)).max() < 2e-6


def test_the_running_state_after_a_tile_is_attention_over_the_keys_so_far():
    inputs = random_head()
    for tile in walk(inputs, 5):
        keys, values, seen = (a[: tile.end] for a in (inputs.keys, inputs.values, inputs.visible))
        so_far = HeadInputs(inputs.query, keys, values, 0.25, None, None, seen)
        assert np.abs(tile.after.divided - exact(so_far)).max() < 2e-6


def test_a_sink_takes_its_share_from_the_start():
    tiles = walk(scored([0.0, 0.0], [6.0, 6.0], sink=0.0), 1)
    assert tiles[0].after.total == 2.0
    assert tiles[1].after.divided == pytest.approx([4.0])  # two keys of three equal logits
    assert weights64(scored([0.0, 0.0], [6.0, 6.0], sink=0.0)).sum() == pytest.approx(2 / 3)


def test_tiles_that_the_mask_hides_whole_change_nothing():
    inputs = scored([9.0, 9.0, 1.0, 1.0], [100.0, 100.0, 2.0, 4.0])
    hidden = HeadInputs(inputs.query, inputs.keys, inputs.values, 1.0, None, None, np.array([False, False, True, True]))
    tiles = walk(hidden, 2)
    assert (tiles[0].after.largest, tiles[0].after.total, tiles[0].rescale) == (-math.inf, 0.0, 1.0)
    assert tiles[0].after.divided.tolist() == [0.0]
    assert tiles[1].after.divided == pytest.approx([3.0])
    assert exact(hidden) == pytest.approx([3.0])


def test_nothing_merged_with_nothing_is_nothing():
    assert merge(nothing_yet(3), nothing_yet(3)).total == 0.0


def test_a_tile_without_keys_is_refused():
    with pytest.raises(InvalidSettings, match="1 key or more, got 0"):
        walk(random_head(), 0)


# --- over a live session ---------------------------------------------------------------------------------------


def opened(name: str = "llama", steps: int = 3, **changes):
    engine = tiny_engine(name, **changes)
    session = engine.create_session(sampling=SamplingParams(temperature=0.0))
    session.prefill(PROMPT).result()
    for _ in range(steps):
        session.step().result()
    return session


@pytest.fixture
def session():
    made = opened()
    yield made
    made.engine.close()


@pytest.mark.parametrize("name", ["llama", "gemma2", "mistral", "gpt_oss", "gpt2"])
@pytest.mark.parametrize("keeps", [True, False])
def test_the_weights_are_those_of_the_attention_row_on_the_step_page(name, keeps):
    session = opened(name, capture_bytes=10_000_000 if keeps else 0)
    try:
        for step in (0, 1, 3):
            row = session.attention(step).result()
            for layer in range(row.shape[0]):
                for head in range(row.shape[1]):
                    inputs = read_head(session, step, layer, head).result()
                    assert np.abs(weights64(inputs) - row[layer, head]).max() < 2e-6
                    walked = walk(inputs, 4)[-1].after
                    scores = np.concatenate([tile.scores for tile in walk(inputs, 4)])
                    assert np.abs(np.exp(scores - walked.largest) / walked.total - row[layer, head]).max() < 2e-6
    finally:
        session.engine.close()


def test_the_output_is_that_of_torchs_scaled_dot_product_attention(session):
    for layer, head in ((0, 0), (0, 3), (1, 2)):
        inputs = read_head(session, 3, layer, head).result()
        assert inputs.keys.shape == (len(PROMPT) + 3, 16)
        query, keys, values = (torch.from_numpy(a.copy()) for a in (inputs.query[None], inputs.keys, inputs.values))
        expected = F.scaled_dot_product_attention(query, keys, values, scale=inputs.scaling)[0].numpy()
        assert np.abs(walk(inputs, 6)[-1].after.divided - expected).max() < 1e-6


def test_heads_of_one_group_share_keys_and_values_and_not_the_query(session):
    first, second, third = (read_head(session, 2, 1, head).result() for head in (0, 1, 2))
    assert np.array_equal(first.keys, second.keys)
    assert not np.array_equal(first.query, second.query)
    assert not np.array_equal(first.keys, third.keys)


def test_what_was_read_is_a_copy_and_reading_moves_nothing(session):
    before = session.recipe
    inputs = read_head(session, 0, 0, 0).result()
    kept = inputs.keys.copy()
    session.step().result()
    session.prefill((5, 6)).result()
    assert np.array_equal(inputs.keys, kept)
    assert before.prompt_ids == PROMPT
    with pytest.raises(ValueError, match="read-only"):
        inputs.keys[0] = 0


@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        ((9, 0, 0), UnknownStep, "no step 9"),
        ((0, 2, 0), UnknownLayer, "no layer 2"),
        ((0, 0, 4), UnknownHead, "no head 4"),
        ((0, -1, 0), UnknownLayer, "no layer -1"),
    ],
)
def test_what_does_not_exist_is_refused_by_name(session, asked, error, message):
    with pytest.raises(error, match=message):
        read_head(session, *asked).result()


def test_a_session_without_a_prompt_has_nothing_to_read(session):
    with pytest.raises(NotPrefilled):
        read_head(session.engine.create_session(), 0, 0, 0).result()


def test_a_compressed_cache_is_refused_in_words():
    session = opened("deepseek_v3", steps=0)
    try:
        with pytest.raises(UnsupportedModel, match="compressed vector"):
            read_head(session, 0, 0, 0).result()
    finally:
        session.engine.close()
