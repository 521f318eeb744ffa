"""A session from prefill to stop: what moves it, what must not, and what a failure leaves behind."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.config import ChosenToken, Recipe, SamplingParams, StopRules
from engine.errors import (
    EmptyPrompt,
    EngineStopped,
    NotPrefilled,
    NumericalFailure,
    PromptTooLong,
    SessionError,
    SessionFinished,
    UnknownStep,
    UnknownToken,
)
from engine.llm_engine import LLMEngine
from engine.session import DecodeSession
from tests.engine.architectures import tiny_engine
from tests.engine.holding import hold

PROMPT = (40, 50, 60, 70)
WARM = SamplingParams(temperature=0.9, top_k=40, top_p=0.95, repetition_penalty=1.1)


@pytest.fixture(scope="module")
def engine():
    made = tiny_engine()
    yield made
    made.close()


@pytest.fixture
def session(engine: LLMEngine) -> DecodeSession:
    made = engine.create_session(sampling=WARM, seed=11)
    made.prefill(PROMPT).result()
    return made


def steps(session: DecodeSession, count: int) -> list[int]:
    return [session.step().result().emitted_ids[0] for _ in range(count)]


def last_scores(session: DecodeSession) -> np.ndarray:
    return session.records[-1].candidates.logits


def test_after_every_step_the_cache_holds_all_tokens_but_the_newest(session):
    for _ in range(3):
        session.step().result()
        assert session.records[-1].kv_len == len(session.recipe.token_ids) - 1


def test_a_prompt_of_6_and_3_drawn_tokens_leave_8_entries_in_the_cache(engine):
    session = engine.create_session()
    session.prefill((5, 6, 7, 8, 9, 10)).result()
    steps(session, 2)
    assert len(session.recipe.chosen) == 3
    assert session.records[-1].kv_len == 8


def test_step_0_feeds_the_prompt_and_every_later_step_the_one_token_drawn_before(session):
    steps(session, 2)
    first, second, third = session.records
    assert (first.phase, first.input_ids, first.positions) == ("prefill", PROMPT, (0, 1, 2, 3))
    assert (second.phase, second.input_ids, second.positions) == ("decode", first.emitted_ids, (4,))
    assert (third.input_ids, third.positions) == (second.emitted_ids, (5,))


def test_rewind_then_step_gives_the_same_tokens_from_bit_equal_scores(session):
    drawn = steps(session, 6)
    scores = last_scores(session)
    session.rewind(2).result()
    assert len(session.records) == 3
    assert session.records[-1].kv_len == len(session.recipe.token_ids) - 1
    assert steps(session, 4) == drawn[2:]
    assert np.array_equal(last_scores(session), scores)


def test_a_fork_goes_its_own_way_and_leaves_its_origin_alone(engine, session):
    drawn = steps(session, 4)
    branch = session.fork(1).result()
    branch.configure(seed=99).result()
    steps(branch, 5)
    assert branch.recipe.token_ids[:6] == session.recipe.token_ids[:6]
    assert session.recipe.token_ids == (*PROMPT, session.records[0].emitted_ids[0], *drawn)
    alone = engine.create_session(sampling=WARM, seed=11)
    alone.prefill(PROMPT).result()
    assert steps(alone, 7) == drawn + steps(session, 3)
    assert np.array_equal(last_scores(alone), last_scores(session))


def test_a_forced_token_replaces_the_newest_is_marked_and_is_fed_next(session):
    steps(session, 2)
    before = session.records[-1]
    record = session.force(77).result()
    assert (record.draw.mode, record.draw.token_id, record.draw.drawn_id) == ("forced", 77, before.draw.drawn_id)
    assert session.roles[-1] == "forced"
    assert len(session.records) == 3
    assert session.step().result().input_ids == (77,)


def test_forcing_keeps_the_draw_on_record_whatever_the_settings_are_by_now(session):
    steps(session, 1)
    then = session.records[-1]
    session.configure(sampling=SamplingParams(temperature=2.0), seed=12345).result()
    record = session.force(int(then.candidates.ids[3])).result()
    kept = (then.draw.u, then.draw.drawn_id, then.draw.low, then.draw.high)
    assert (record.draw.u, record.draw.drawn_id, record.draw.low, record.draw.high) == kept
    assert record.draw.final_prob == record.stages[-1].probs[3]
    assert record.sampling == WARM


def test_changed_settings_act_from_the_next_step_on(session):
    steps(session, 2)
    kept = session.recipe.token_ids
    session.configure(sampling=SamplingParams(temperature=0.0)).result()
    assert session.recipe.token_ids == kept
    assert session.step().result().draw.mode == "greedy"
    assert [c.sampling.temperature for c in session.recipe.chosen] == [0.9, 0.9, 0.9, 0.0]


def test_looking_never_changes_the_run(engine):
    plain = engine.create_session(sampling=WARM, seed=4)
    looked = engine.create_session(sampling=WARM, seed=4)
    for session in (plain, looked):
        session.prefill(PROMPT).result()
    for _ in range(4):
        plain.step().result()
        looked.step().result()
        last = len(looked.records) - 1
        first_look = looked.what_if(last, SamplingParams(temperature=2.0)).result()[0].logits
        looked.attention(0).result()
        looked.prompt_attention(1, 2).result()
        looked.prompt_rows().result()
        looked.standings(0, (9, 10)).result()
        again = looked.what_if(last, SamplingParams(temperature=0.5)).result()[0].logits
        assert np.array_equal(first_look, again)
    assert looked.recipe == plain.recipe
    assert looked.records[-1].kv_bytes == plain.records[-1].kv_bytes
    assert np.array_equal(last_scores(looked), last_scores(plain))


def test_a_what_if_with_a_steps_own_settings_gives_that_steps_own_stages(session):
    steps(session, 4)
    for record in session.records:  # the penalty sees the tokens before the step, not those after it
        _, stages = session.what_if(record.index, WARM).result()
        assert [s.kept for s in stages] == [s.kept for s in record.stages]
        np.testing.assert_allclose(stages[-1].probs, record.stages[-1].probs, atol=1e-6)


def test_a_replay_writes_nothing_not_even_behind_the_cache(session):
    steps(session, 60)  # 64 tokens: the first buffer is exactly full
    store = session._state.store
    before, reserved = store.norms(0, 64).clone(), store.reserved_bytes
    assert store.length == 64
    session.attention(0).result()
    session.prompt_rows().result()
    assert store.reserved_bytes == reserved
    assert torch.equal(store.norms(0, 64), before)


def test_a_released_session_keeps_its_recipe_and_its_next_step_is_the_same(engine):
    kept, released = (engine.create_session(sampling=WARM, seed=8) for _ in range(2))
    for session in (kept, released):
        session.prefill(PROMPT).result()
        steps(session, 3)
    released.release().result()
    assert steps(released, 3) == steps(kept, 3)


@pytest.mark.parametrize(
    "touch",
    [
        lambda s: s.step(),
        lambda s: s.attention(1),
        lambda s: s.rewind(1),
        lambda s: s.fork(1),
        lambda s: s.force(9),
        lambda s: s.prompt_rows(),
        lambda s: s.what_if(0, SamplingParams()),
    ],
    ids=["step", "attention", "rewind", "fork", "force", "prompt rows", "what if"],
)
def test_a_touch_right_behind_a_release_finds_the_cache_filled_again(session, touch):
    steps(session, 3)
    session.release()
    touch(session).result()
    assert session.step().result().kv_len == len(session.recipe.token_ids) - 1


def test_a_seed_changed_on_the_way_draws_the_same_tokens_when_rebuilt(engine, session):
    steps(session, 2)
    session.configure(seed=77).result()
    steps(session, 2)
    assert [c.seed for c in session.recipe.chosen] == [11, 11, 11, 77, 77]
    again = engine.resume(session.recipe, session.roles).result()
    assert [r.draw.u for r in again.records] == [r.draw.u for r in session.records]
    assert [r.draw.drawn_id for r in again.records] == [c.token_id for c in session.recipe.chosen]


def test_a_session_rebuilt_from_its_recipe_has_the_same_tokens_draws_and_bytes(engine, session):
    steps(session, 2)
    session.force(33).result()
    session.configure(sampling=SamplingParams(temperature=0.0)).result()
    steps(session, 3)
    again = engine.resume(session.recipe, session.roles).result()
    assert again.recipe == session.recipe
    assert again.roles == session.roles
    for ours, theirs in zip(again.records, session.records, strict=True):
        assert (ours.draw.mode, ours.draw.token_id, ours.draw.u) == (
            theirs.draw.mode,
            theirs.draw.token_id,
            theirs.draw.u,
        )
        assert (ours.kv_bytes, ours.text, ours.positions) == (theirs.kv_bytes, theirs.text, theirs.positions)
        np.testing.assert_allclose(ours.candidates.logits, theirs.candidates.logits, atol=1e-5)
        assert ours.timing is None, "a step that was not run was not timed"
    assert steps(again, 3) == steps(session, 3)


def test_prefill_in_chunks_draws_the_same_token_as_in_one(engine):
    prompt = tuple(range(10, 60))
    whole = engine.create_session(sampling=WARM, seed=3)
    whole.prefill(prompt).result()
    small = tiny_engine(prefill_chunk=7)
    try:
        chunked = small.create_session(sampling=WARM, seed=3)
        chunked.prefill(prompt).result()
        assert chunked.records[0].emitted_ids == whole.records[0].emitted_ids
        np.testing.assert_allclose(last_scores(chunked), last_scores(whole), atol=1e-5)
        assert chunked.records[0].kv_bytes == whole.records[0].kv_bytes
    finally:
        small.close()


def test_attention_of_an_old_step_is_the_same_replayed_as_captured(engine):
    keeps, drops = tiny_engine(), tiny_engine(capture_bytes=0)
    try:
        rows = []
        for made in (keeps, drops):
            session = made.create_session(sampling=WARM, seed=5)
            session.prefill(PROMPT).result()
            steps(session, 5)
            rows.append([session.attention(i).result() for i in range(6)])
        for captured, replayed in zip(*rows, strict=True):
            np.testing.assert_allclose(captured, replayed, atol=1e-6)
            np.testing.assert_allclose(captured.sum(-1), 1, atol=1e-6)
    finally:
        keeps.close()
        drops.close()


def test_a_step_has_one_row_per_layer_and_head_over_exactly_the_keys_then_cached(session):
    steps(session, 3)
    assert [session.attention(i).result().shape for i in range(4)] == [(2, 4, n) for n in (4, 5, 6, 7)]


def test_the_prompts_rows_end_with_the_row_that_drew_the_first_token(session):
    rows = session.prompt_rows().result()
    assert [row.position for row in rows] == [0, 1, 2, 3]
    assert [row.actual_next_id for row in rows] == [50, 60, 70, None]
    assert rows[-1].top_ids[0] == session.records[0].candidates.ids[0]


def test_nothing_can_be_stepped_before_a_prompt(engine):
    with pytest.raises(NotPrefilled, match="Prefill a prompt first"):
        engine.create_session().step().result()


@pytest.mark.parametrize(
    ("prompt", "error", "words"),
    [
        ((), EmptyPrompt, "at least one token"),
        ((5,) * 128, PromptTooLong, "Tiny reads 128 and needs room for one more. Shorten it by 1 token."),
        ((5, 300), UnknownToken, "Token id 300 is outside"),
    ],
)
def test_a_prompt_that_cannot_be_run_is_refused_and_the_session_stays(session, prompt, error, words):
    steps(session, 2)
    before = session.recipe
    with pytest.raises(error, match=words.replace(".", r"\.")):
        session.prefill(prompt).result()
    assert session.recipe == before
    session.step().result()


def test_a_prompt_of_124_in_a_context_of_128_gets_4_tokens(engine):
    session = engine.create_session()
    session.prefill((7,) * 124).result()
    steps(session, 3)
    assert session.records[-1].finish_reason == "context_limit"
    with pytest.raises(SessionFinished, match="context limit"):
        session.step().result()
    assert len(session.recipe.token_ids) == 128


def test_a_finished_session_says_why_and_goes_on_when_the_rule_is_changed(engine):
    session = engine.create_session(stop=StopRules(max_new_tokens=2))
    session.prefill(PROMPT).result()
    session.step().result()
    with pytest.raises(SessionFinished, match=r"max new tokens 2 \(2 of 2 new tokens\)"):
        session.step().result()
    session.configure(stop=StopRules(max_new_tokens=3)).result()
    assert session.records[-1].finish_reason is None
    session.step().result()


def test_a_user_stop_ends_decoding_and_a_rewind_lifts_it(session):
    steps(session, 2)
    session.stop().result()
    assert session.records[-1].finish_reason == "user"
    with pytest.raises(SessionFinished, match="user stop"):
        session.step().result()
    session.rewind(1).result()
    session.step().result()


def test_logits_that_are_not_numbers_fail_the_step_end_the_run_with_that_reason_and_cost_it_nothing(engine, session):
    drawn = steps(session, 2)
    head = engine.model.get_output_embeddings()
    row = head.weight[9].clone()
    with torch.inference_mode():
        head.weight[9] = torch.nan
        with pytest.raises(NumericalFailure, match="NaN"):
            session.step().result()
        head.weight[9] = row
    newest = session.records[-1]
    assert (newest.index, newest.emitted_ids[0], newest.finish_reason) == (2, drawn[-1], "nan")
    assert [check.rule for check in newest.stops if check.fired] == ["nan"]
    session.configure(stop=StopRules(max_new_tokens=100)).result()
    assert session.records[-1].finish_reason == "nan", "another limit does not make numbers of them"
    with pytest.raises(SessionFinished, match="numerical failure"):
        session.step().result()
    session.rewind(2).result()
    assert session.records[-1].finish_reason is None
    fresh = engine.create_session(sampling=WARM, seed=11)
    fresh.prefill(PROMPT).result()
    assert steps(fresh, 4) == drawn + steps(session, 2)


def test_the_probability_of_the_end_ids_outlasts_a_change_of_rules_a_rewind_a_fork_and_a_rebuild():
    engine = tiny_engine(end_ids=(2,), prefix_bytes=0)
    ends = 0
    for seed in range(3):
        session = engine.create_session(sampling=SamplingParams(temperature=0.5), seed=seed)
        session.prefill(PROMPT).result()
        before = end_rule(session)
        if before.nearness is None or before.fired:
            session.close().result()
            continue
        ends += 1
        shown = session.records[-1].candidates.ids[:64].tolist().index(2)
        assert before.nearness == session.records[-1].stages[-1].probs[shown]
        session.configure(stop=StopRules(max_new_tokens=9)).result()
        assert end_rule(session) == before
        session.step().result()
        session.rewind(0).result()
        assert end_rule(session) == before
        assert end_rule(session.fork(0).result()) == before
        again = engine.resume(session.recipe, session.roles).result()
        assert end_rule(again).nearness == pytest.approx(before.nearness, rel=1e-4)
    assert ends, "some prompt must leave the EOS token among those whose probability is kept"
    engine.close()


def end_rule(session: DecodeSession):
    return next(check for check in session.records[-1].stops if check.rule == "end_id")


def test_a_rewind_shows_the_older_step_under_the_rules_in_force_now(session):
    steps(session, 6)
    session.configure(stop=StopRules(max_new_tokens=3)).result()
    session.rewind(4).result()
    assert session.records[-1].finish_reason == "max_new_tokens"
    with pytest.raises(SessionFinished):
        session.step().result()
    assert session.fork(1).result().records[-1].finish_reason is None


def test_a_rewind_takes_back_an_end_that_a_person_asked_for(session):
    steps(session, 2)
    session.stop().result()
    assert session.records[-1].finish_reason == "user"
    session.rewind(2).result()
    assert session.records[-1].finish_reason is None
    assert session.step().result().index == 3


def test_the_rules_run_once_a_step_and_only_the_newest_token_is_joined(engine, session, monkeypatch):
    steps(session, 1)
    rules, joined = [], []
    verdict, join = engine.stepper.verdict, engine.tokenizer.join
    monkeypatch.setattr(engine.stepper, "verdict", lambda *a: rules.append(1) or verdict(*a))
    monkeypatch.setattr(type(engine.tokenizer), "join", lambda self, ids: joined.append(ids) or join(ids))
    steps(session, 5)
    assert (len(rules), joined) == (5, [])


def test_text_joined_token_by_token_is_the_text_joined_at_once(engine, session):
    steps(session, 60)  # random bytes: halves of characters, bytes that start none, whole ones
    joined = engine.tokenizer.join([c.token_id for c in session.recipe.chosen])
    newest = session.records[-1]
    assert (newest.text + newest.held, newest.pending) == (joined.text, joined.pending)
    assert "\ufffd" in joined.text


def test_a_step_that_does_not_exist_cannot_be_rewound_to(session):
    with pytest.raises(UnknownStep, match="There is no step 5: this session has steps 0 to 0"):
        session.rewind(5).result()
    with pytest.raises(UnknownToken, match="There is no token 300"):
        session.force(300).result()


def test_a_reset_forgets_the_prompt_and_keeps_the_settings(session):
    session.reset().result()
    assert session.recipe.token_ids == ()
    assert session.recipe.sampling == WARM
    with pytest.raises(NotPrefilled):
        session.step().result()


def test_a_cancelled_prefill_leaves_the_session_as_it_was():
    engine = tiny_engine(prefill_chunk=1)
    try:
        session = engine.create_session(sampling=WARM)
        session.prefill(PROMPT).result()
        before = session.recipe
        started = session.prefill(tuple(range(10, 110)))
        while session.progress is None and not started.done():
            pass
        session.cancel()
        with pytest.raises(SessionError, match="was cancelled"):
            started.result()
        assert session.recipe == before
        session.step().result()
    finally:
        engine.close()


def test_a_prefill_cancelled_while_it_waits_is_never_run(engine, session):
    before, release = session.recipe, hold(engine)
    waiting = session.prefill((80, 81, 82))
    session.cancel()
    release.set()
    with pytest.raises(SessionError, match="was cancelled"):
        waiting.result()
    assert session.recipe == before
    assert session.prefill((80, 81, 82)).result().input_ids == (80, 81, 82)


def test_a_recipe_with_a_prompt_alone_resumes_with_its_first_token(engine, session):
    again = engine.resume(Recipe("tiny", PROMPT, (), WARM, StopRules(), 11)).result()
    assert again.records[0].emitted_ids == session.records[0].emitted_ids


def test_a_recipe_is_the_truth_even_where_rounding_would_draw_otherwise(engine):
    chosen = (ChosenToken(44, False, WARM), ChosenToken(45, False, WARM))
    again = engine.resume(Recipe("tiny", PROMPT, chosen, WARM, StopRules(), 11)).result()
    assert again.recipe.chosen == chosen
    assert [r.emitted_ids for r in again.records] == [(44,), (45,)]


def test_a_closed_engine_says_so():
    engine = tiny_engine()
    session = engine.create_session()
    engine.close()
    with pytest.raises(EngineStopped, match="Reload the page"):
        session.prefill(PROMPT)
