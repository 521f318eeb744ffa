"""With and without a cache: the same tokens as stock transformers in both modes, and counts as on paper."""

from __future__ import annotations

import dataclasses
from concurrent.futures import Future
from typing import Any

import pytest
import torch
from transformers import GenerationConfig

from engine.config import SamplingParams
from engine.errors import InvalidSettings, PromptTooLong
from engine.forward.model_runner import Feed, ModelRunner
from engine.studies.uncached import Race, RaceStep
from tests.engine.architectures import ARCHITECTURES, tiny_engine, tiny_model

PROMPT = tuple(int(i) for i in torch.randint(3, 300, (7,), generator=torch.Generator().manual_seed(2)))
GREEDY = SamplingParams(temperature=0)
FP32 = 1e-5


@pytest.fixture(autouse=True)
def _no_grad():
    with torch.inference_mode():
        yield


def finished(race: Race, runner: ModelRunner) -> tuple[RaceStep, ...]:
    """All steps, run here and now."""
    for _ in race.run(runner):
        pass
    return race.steps


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_both_loops_draw_what_generate_draws_with_and_without_its_cache(name):
    steps = finished(Race(PROMPT, 12, GREEDY), ModelRunner(tiny_model(name)))
    ids = torch.tensor([PROMPT])
    for use_cache, drawn in (
        (True, [step.cached.token_id for step in steps]),
        (False, [step.uncached.token_id for step in steps]),
    ):
        plain = GenerationConfig(
            do_sample=False, max_new_tokens=12, eos_token_id=None, pad_token_id=0, use_cache=use_cache
        )
        expected = tiny_model(name).generate(ids, attention_mask=torch.ones_like(ids), generation_config=plain)
        assert drawn == expected[0, len(PROMPT) :].tolist()
    assert all(step.agrees for step in steps)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_forward_without_a_cache_equals_stock_transformers_without_one(name):
    stock = tiny_model(name)(input_ids=torch.tensor([PROMPT]), use_cache=False).logits[0, -1]
    row = ModelRunner(tiny_model(name)).forward_uncached(PROMPT).rows[0]
    assert row.logits.shape == (1, 300)
    torch.testing.assert_close(row.logits[0], stock, atol=FP32, rtol=0)


def test_a_forward_without_a_cache_lets_others_in_at_every_layer_and_their_time_is_not_its_own(monkeypatch):
    runner, clock, came = ModelRunner(tiny_model("llama")), [0.0], []

    def others() -> None:
        came.append(clock[0])
        clock[0] += 1_000.0

    expected = runner.forward_uncached(PROMPT)
    for module in ("engine.forward.model_runner", "engine.forward.forward_pass"):
        monkeypatch.setattr(f"{module}.now_ms", lambda: clock[0])
    runner.between_layers = others
    found = runner.forward_uncached(PROMPT)
    assert (len(came), found.forward_ms) == (runner.num_layers, 0.0)
    assert torch.equal(found.rows[0].logits, expected.rows[0].logits)


def test_200_tokens_after_a_prompt_of_4_are_20700_positions_without_a_cache_and_203_with_one():
    model = tiny_model("llama", max_position_embeddings=256)
    steps = finished(Race(PROMPT[:4], 200, GREEDY), ModelRunner(model))
    assert sum(step.uncached.positions for step in steps) == 20_700  # 200 x 4 + 200 x 199 / 2
    assert sum(step.cached.positions for step in steps) == 203  # 4 + 200 - 1
    assert sum(step.uncached.pairs for step in steps) == 1_414_900  # 4x5/2 + 5x6/2 + ... + 203x204/2
    assert sum(step.cached.pairs for step in steps) == 20_706  # 4x5/2 + 5 + 6 + ... + 203


def test_step_0_is_the_same_forward_for_both_and_differs_by_nothing():
    first, second = finished(Race(PROMPT, 2, GREEDY), ModelRunner(tiny_model("llama")))
    assert (first.cached.positions, first.uncached.positions) == (7, 7)
    assert first.logit_difference == 0
    assert (second.cached.positions, second.uncached.positions) == (1, 8)


def test_the_two_agree_to_rounding_and_the_difference_is_told():
    steps = finished(Race(PROMPT, 20, GREEDY), ModelRunner(tiny_model("llama")))
    worst = max(step.logit_difference for step in steps)
    assert 0 < worst < FP32  # sums in another order: never quite 0, never more than rounding


def test_they_take_turns_in_going_first():
    steps = finished(Race(PROMPT, 4, GREEDY), ModelRunner(tiny_model("llama")))
    assert [step.first for step in steps] == ["cached", "uncached", "cached", "uncached"]


def test_with_the_same_u_both_draw_the_same_tokens_and_another_seed_draws_others():
    sampling, runner = SamplingParams(temperature=1.5), ModelRunner(tiny_model("llama"))
    steps = finished(Race(PROMPT, 16, sampling, seed=3), runner)
    assert all(step.agrees for step in steps)
    other = finished(Race(PROMPT, 16, sampling, seed=4), runner)
    assert [step.token_id for step in steps] != [step.token_id for step in other]


def test_the_lead_is_the_best_score_less_the_second():
    runner = ModelRunner(tiny_model("llama"))
    step = finished(Race(PROMPT, 1, GREEDY), runner)[0]
    scores = runner.forward_uncached(PROMPT).rows[0].logits[0].sort(descending=True).values
    assert step.lead == pytest.approx(float(scores[0] - scores[1]), rel=1e-5)


class Nudged(ModelRunner):
    """A runner whose uncached scores prefer token 9 from a length of 10 on: an error that must show."""

    def forward_uncached(self, token_ids: Any) -> Any:
        result = super().forward_uncached(token_ids)
        row = result.rows[0]
        if len(token_ids) >= 10:
            row.logits[0, 9] += 100
        return dataclasses.replace(result, rows=(row,))


def test_where_the_loops_differ_it_is_said_by_how_much_and_both_go_on_with_the_cached_token():
    steps = finished(Race(PROMPT, 6, GREEDY), Nudged(tiny_model("llama")))
    honest = finished(Race(PROMPT, 6, GREEDY), ModelRunner(tiny_model("llama")))
    assert [step.agrees for step in steps] == [True, True, True, False, False, False]
    assert [step.token_id for step in steps] == [step.token_id for step in honest]
    assert steps[3].uncached.token_id == 9
    assert steps[3].logit_difference == pytest.approx(100, rel=1e-4)


def test_a_stopped_race_keeps_what_was_done():
    race = Race(PROMPT, 50, GREEDY)
    pieces = race.run(ModelRunner(tiny_model("llama")))
    while len(race.steps) < 3:
        next(pieces)
    race.stop()
    with pytest.raises(StopIteration) as ended:
        next(pieces)
    assert ended.value.value == race.steps
    assert len(race.steps) == 3
    assert race.was_stopped


def test_a_race_on_the_engine_leaves_a_session_as_it_was_and_lets_it_step_meanwhile():
    engine, alone = tiny_engine(), tiny_engine()
    try:
        session, other = engine.create_session(seed=5), alone.create_session(seed=5)
        race = Race(PROMPT, 40, GREEDY)
        for one in (session, other):
            one.prefill(PROMPT).result()
        seen: list[tuple[int, int]] = []
        race.start(engine, lambda done, total: seen.append((done, total)))
        for _ in range(5):
            session.step().result()
            other.step().result()
        assert len(race.future.result()) == 40
        assert session.recipe == other.recipe
        assert not race.was_stopped
        assert seen == [(done, 40) for done in range(1, 41)]
    finally:
        engine.close()
        alone.close()


def test_others_may_step_between_any_two_forwards():
    forwards: list[int] = []

    class Counting(ModelRunner):
        def _timed(self, forward_pass: Any, *rest: Any) -> Any:
            forwards.append(forward_pass.num_new)
            return super()._timed(forward_pass, *rest)

    before = 0
    for _ in Race(PROMPT, 5, GREEDY).run(Counting(tiny_model("llama"))):
        assert len(forwards) - before == 1
        before = len(forwards)


def test_a_forward_without_a_cache_writes_to_no_store():
    runner = ModelRunner(tiny_model("llama"))
    store = runner.new_store()
    runner.forward([Feed(store, PROMPT)])
    held = [tensor.clone() for layer in range(2) for tensor in store.view(layer, 7)]
    runner.forward_uncached(PROMPT[::-1])
    assert store.length == 7
    assert all(torch.equal(a, b) for a, b in zip(held, (t for i in range(2) for t in store.view(i, 7)), strict=True))


@pytest.mark.parametrize(
    ("prompt", "new_tokens", "words"), [((), 5, "empty"), ((1,), 0, "got 0"), ((1,), 9999, "4,096")]
)
def test_a_race_that_cannot_be_is_refused_in_words(prompt, new_tokens, words):
    with pytest.raises(InvalidSettings, match=words):
        Race(prompt, new_tokens, GREEDY)


def test_a_race_past_what_the_model_reads_is_refused_with_how_many_to_drop():
    engine = tiny_engine()
    try:
        with pytest.raises(PromptTooLong, match=r"need 130 positions; Tiny reads 128. Take 2 fewer"):
            Race(PROMPT, 124, GREEDY).start(engine)
        assert len(Race(PROMPT[:3], 126, GREEDY).start(engine).result()) == 126  # 3 + 126 - 1 = 128: exactly enough
    finally:
        engine.close()


def test_a_race_begun_again_after_memory_ran_out_counts_no_step_twice():
    race, runner = Race(PROMPT, 4, GREEDY), ModelRunner(tiny_model("llama"))
    pieces = race.run(runner)
    while len(race.steps) < 2:
        next(pieces)
    assert [step.index for step in finished(race, runner)] == [0, 1, 2, 3]


def test_in_16_bits_the_two_differ_by_more_and_the_counts_stay():
    single, half = (
        finished(Race(PROMPT, 12, GREEDY), ModelRunner(tiny_model("llama").to(kind)))
        for kind in (torch.float32, torch.bfloat16)
    )
    worst = [max(step.logit_difference for step in steps) for steps in (single, half)]
    assert worst[1] > 100 * worst[0]  # 8 bits of a number instead of 24
    assert sum(step.uncached.positions for step in half) == 12 * 7 + 66


def test_a_race_that_has_not_begun_has_no_steps_and_is_not_done():
    race = Race(PROMPT, 5, GREEDY)
    assert race.steps == ()
    assert isinstance(race.future, Future)
    assert not race.future.done()
