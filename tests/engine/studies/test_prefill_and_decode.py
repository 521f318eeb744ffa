"""Prefill and decode of two requests, timed side by side: which forwards are run, in what order, and what is kept."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import GenerationConfig

from engine.errors import InvalidSettings
from engine.forward.model_runner import Feed, ModelRunner
from engine.studies.prefill_and_decode import Phases, PhaseTimes, filled
from tests.engine.architectures import tiny_model

SOURCE = (40, 50, 60)


class Listening(ModelRunner):
    """Notes what every forward feeds, and how long the cache was before."""

    def __init__(self, *args: Any) -> None:
        self.fed: list[tuple[tuple[int, ...], int]] = []
        super().__init__(*args)

    def forward(self, batch: Any, **settings: Any) -> Any:
        feed: Feed = batch[0]
        self.fed.append((feed.token_ids, feed.store.length))
        return super().forward(batch, **settings)


@pytest.fixture
def runner():
    with torch.inference_mode():
        yield Listening(tiny_model("llama"))


def nobody(_done: int, _total: int) -> None: ...


def finished(phases: Phases, runner: ModelRunner) -> tuple[PhaseTimes, ...]:
    for _ in phases.run(runner, nobody):
        pass
    return phases.times


def test_50_and_3_against_3_and_50_are_one_sweep_thrice_and_2_steps_or_49(runner):
    long, short = finished(Phases(SOURCE, [(50, 3), (3, 50)]), runner)
    assert (len(long.sweeps_ms), len(long.steps_ms)) == (3, 2)
    assert (len(short.sweeps_ms), len(short.steps_ms)) == (3, 49)
    assert long.is_whole
    assert short.is_whole
    sizes = [(len(ids), before) for ids, before in runner.fed]
    assert sizes.count((50, 0)) == 3
    assert sizes.count((3, 0)) == 3
    assert sorted(before for size, before in sizes if size == 1) == sorted([50, 51, *range(3, 52)])


def test_the_steps_feed_what_generate_draws(runner):
    finished(Phases(SOURCE, [(5, 8)]), runner)
    ids = torch.tensor([filled(SOURCE, 5)])
    plain = GenerationConfig(do_sample=False, max_new_tokens=8, eos_token_id=None, pad_token_id=0)
    expected = tiny_model("llama").generate(ids, attention_mask=torch.ones_like(ids), generation_config=plain)
    steps = [ids[0] for ids, before in runner.fed if before]
    assert steps == expected[0, 5:-1].tolist()  # the last one drawn is never fed


def test_the_two_requests_are_always_equally_far_along(runner):
    phases = Phases(SOURCE, [(30, 4), (4, 30)])
    for _ in phases.run(runner, nobody):
        first, second = phases.times
        shares = [(len(t.sweeps_ms) + len(t.steps_ms)) / (3 + t.new_tokens - 1) for t in (first, second)]
        assert abs(shares[0] - shares[1]) <= 1 / 6  # one forward of the shorter one


def test_tokens_per_second_are_prompt_tokens_over_a_sweep_and_turns_over_their_sum():
    times = PhaseTimes(500, 4, sweeps_ms=(200.0, 300.0, 250.0), steps_ms=(20.0, 25.0, 15.0))
    assert times.prefill_ms == 250
    assert times.prefill_per_s == 2000  # 500 in a quarter of a second
    assert times.decode_ms == 60
    assert times.decode_per_s == 50  # 3 turns in 60 ms
    assert times.median_step_ms == 20


def test_one_new_token_is_a_prefill_alone(runner):
    (times,) = finished(Phases(SOURCE, [(6, 1)]), runner)
    assert times.steps_ms == ()
    assert times.is_whole
    assert (times.decode_per_s, times.median_step_ms) == (0, 0)


def test_stopping_keeps_what_was_measured(runner):
    phases = Phases(SOURCE, [(6, 40)])
    pieces = phases.run(runner, nobody)
    while len(phases.times[0].steps_ms) < 5:
        next(pieces)
    phases.stop()
    with pytest.raises(StopIteration) as ended:
        next(pieces)
    assert ended.value.value == phases.times
    assert len(phases.times[0].steps_ms) == 5
    assert not phases.times[0].is_whole


def test_phases_begun_again_measure_no_forward_twice(runner):
    phases = Phases(SOURCE, [(6, 4)])
    pieces = phases.run(runner, nobody)
    while len(phases.times[0].steps_ms) < 2:
        next(pieces)
    (times,) = finished(phases, runner)
    assert (len(times.sweeps_ms), len(times.steps_ms)) == (3, 3)


def test_progress_counts_forwards_of_both(runner):
    seen: list[tuple[int, int]] = []
    for _ in Phases(SOURCE, [(6, 3), (3, 6)]).run(runner, lambda done, total: seen.append((done, total))):
        pass
    assert seen == [(done, 13) for done in range(1, 14)]  # 3 + 2 and 3 + 5


def test_a_source_of_3_fills_a_prompt_of_8():
    assert filled((1, 2, 3), 8) == (1, 2, 3, 1, 2, 3, 1, 2)
    assert filled((1, 2, 3), 2) == (1, 2)


@pytest.mark.parametrize(
    ("source", "sizes", "words"),
    [((), [(1, 1)], "empty"), ((1,), [(0, 5)], r"got 0 \+ 5"), ((1,), [(5, 0)], r"5 \+ 0")],
)
def test_a_request_that_cannot_be_is_refused_in_words(source, sizes, words):
    with pytest.raises(InvalidSettings, match=words):
        Phases(source, sizes)
