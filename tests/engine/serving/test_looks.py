"""Studies, checks and long looks on the engine: one at a time, in turn by owner, in pieces that let others in."""

from __future__ import annotations

import itertools
from contextlib import ExitStack

import pytest

from engine.config import Budgets, SamplingParams
from engine.errors import EngineBusy, EngineFull, SessionError
from engine.llm_engine import LLMEngine
from engine.measure.clocks import now_ms
from engine.serving.heavy_share import LIGHT_MS
from engine.studies.chunk_sizes import Chunks
from engine.studies.key_change import change_first_token
from engine.studies.prefill_and_decode import Phases
from engine.studies.self_check.check_numbers import check_numbers
from engine.studies.uncached import Race
from tests.engine.architectures import tiny_engine
from tests.engine.holding import ask_between_layers, hold
from tests.engine.serving.test_session_table import PER_SESSION, opened

PROMPT = tuple(range(10, 50))
GREEDY = SamplingParams(temperature=0.0)


@pytest.fixture(scope="module")
def engine():
    made = tiny_engine(prefill_chunk=16)  # the check's oracle goes through in several forwards, too
    yield made
    made.close()


def noted(done: list[str], name: str, pieces: int = 3):
    for _ in range(pieces):
        done.append(name)
        yield


def prompted(engine: LLMEngine, owner: str | None = None, steps: int = 2):
    session = engine.create_session(owner=owner)
    session.prefill(PROMPT).result()
    for _ in range(steps):
        session.step().result()
    return session


def test_one_look_is_done_before_the_next_begins_whoever_asked(engine):
    done: list[str] = []
    release = hold(engine)
    looks = [engine.study(name, lambda _, name=name: noted(done, name)) for name in "xy"]
    looks.append(opened_run(engine, done))
    release.set()
    for look in looks:
        look.result()
    assert done == [*"xxxyyy", "session", "session", "session"]


def opened_run(engine: LLMEngine, done: list[str]):
    return engine.create_session().run(lambda state: noted(done, "session"))


def test_looks_of_different_tabs_take_turns_and_not_in_the_order_of_asking(engine):
    done: list[str] = []
    release = hold(engine)
    spent = engine._ready.result().spent
    spent.add("loops", 10.0, now_ms())
    looks = [
        engine.study(f"{owner} {i}", lambda _, owner=owner: noted(done, owner, 1), owner=owner)
        for owner, i in (("loops", 0), ("loops", 1), ("other", 0))
    ]
    release.set()
    for look in looks:
        look.result()
    assert done == ["other", "loops", "loops"]


def test_a_prompt_of_who_had_little_is_read_before_more_of_who_had_much():
    engine = tiny_engine(prefill_chunk=4)
    try:
        looping, first = engine.create_session(owner="loops"), engine.create_session(owner="new")
        engine._ready.result().spent.add("loops", LIGHT_MS, now_ms())
        release, order = hold(engine), []
        for name, session, start in (("loops", looping, 10), ("new", first, 100)):
            session.prefill(tuple(range(start, start + 40))).add_done_callback(lambda _, name=name: order.append(name))
        release.set()
        looping.step().result()
        assert order == ["new", "loops"]
    finally:
        engine.close()


def test_sessions_of_a_tab_share_an_account_and_a_fork_belongs_to_the_same_tab(engine):
    spent = engine._ready.result().spent
    one, stranger = prompted(engine, "tab"), prompted(engine)
    before = spent.of("tab", now_ms())
    assert before > 0
    other = one.fork(1).result()
    assert (other.owner, stranger.owner) == ("tab", stranger.id)
    other.prompt_rows().result()
    assert spent.of("tab", now_ms()) > before


def test_a_tab_may_have_so_many_looks_and_another_tab_and_steps_go_on():
    engine = tiny_engine(budgets=Budgets(looks=2))
    try:
        session = prompted(engine, "tab")
        release, done = hold(engine), []
        looks = [session.prompt_rows(), engine.study("lab", lambda _: noted(done, "lab"), owner="tab")]
        with pytest.raises(EngineBusy, match="2 measurements or checks of this tab"):
            session.prompt_attention(0, 0)
        looks.append(engine.study("other", lambda _: noted(done, "other")))
        step = session.step()
        release.set()
        assert step.result().index == 3
        for look in looks:
            look.result()
        assert session.prompt_attention(0, 0).result().shape == (40, 40)
    finally:
        engine.close()


HEAVY = {
    "check": lambda engine, session: check_numbers(session),
    "triangle": lambda engine, session: session.prompt_attention(1, 0),
    "prompt rows": lambda engine, session: session.prompt_rows(),
    "layer times": lambda engine, session: session.layer_times(1),
    "key change": lambda engine, session: change_first_token(session, 99, lambda done, total: None),
    "race": lambda engine, session: Race(PROMPT, 2, GREEDY).start(engine),
    "phases": lambda engine, session: engine.study("p", lambda r: Phases(PROMPT, [(6, 3)]).run(r, lambda d, t: None)),
    "chunk sizes": lambda engine, session: engine.study("c", lambda r: Chunks(PROMPT).run(r, lambda d, t: None)),
}


@pytest.mark.parametrize("name", HEAVY)
def test_a_step_that_is_asked_for_anywhere_in_heavy_work_is_served_at_the_next_layer(engine, monkeypatch, name):
    session, other = prompted(engine), opened(engine)
    steps, done = ask_between_layers(engine, monkeypatch, other.step, 2)
    HEAVY[name](engine, session).result()
    assert [step.result().index for step in steps] == [1, 2]
    assert done == [True, True]


@pytest.mark.parametrize("name", HEAVY)
def test_no_piece_of_heavy_work_runs_more_than_a_layer_without_a_pause(engine, monkeypatch, name):
    """Counted in forwards of a layer: every layer that runs has a pause of its own before it."""
    session = prompted(engine)
    runner, seen = engine.stepper.runner, []
    serve = runner.between_layers

    def pause() -> None:
        seen.append("pause")
        serve()

    monkeypatch.setattr(runner, "between_layers", pause)
    with ExitStack() as hooks:
        for layer in (*runner.model.model.layers, *engine.stock.model.layers):
            hooks.callback(layer.mlp.register_forward_pre_hook(lambda *_: seen.append("layer")).remove)
        HEAVY[name](engine, session).result()
    assert "layer" in seen
    assert all(before == "pause" for before, now in itertools.pairwise(seen) if now == "layer")


def test_a_look_whose_caches_do_not_fit_ends_in_words_and_everybody_keeps_theirs():
    engine = tiny_engine(budgets=Budgets(kv_bytes=2 * PER_SESSION))
    try:
        session, idle = opened(engine), opened(engine)
        with pytest.raises(EngineFull, match="caches of its own"):
            change_first_token(session, 99, lambda done, total: None).result()
        assert session.step().result().rebuilt_tokens == 0
        assert idle.step().result().index == 1
        assert engine.counters().kv_reserved_bytes <= 2 * PER_SESSION
    finally:
        engine.close()


def test_a_look_is_stopped_between_its_pieces_and_the_next_one_has_the_place(engine):
    done: list[str] = []
    session = prompted(engine)
    release = hold(engine)
    endless = session.run(lambda state: noted(done, "endless", 10**9))
    after = engine.study("next", lambda _: noted(done, "next", 1), owner=session.owner)
    release.set()
    session.cancel()
    with pytest.raises(SessionError, match="stopped"):
        endless.result()
    after.result()
    assert done[-1] == "next"
