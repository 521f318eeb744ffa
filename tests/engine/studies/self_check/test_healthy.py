"""A healthy engine passes: a hundred runs of every kind, on the tiny model; a few on the bundled one."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from engine.config import EngineConfig, SamplingParams, StopRules
from engine.errors import SessionFinished
from engine.llm_engine import LLMEngine
from engine.session import DecodeSession
from engine.studies.self_check.check_numbers import check_numbers
from tests.engine.architectures import tiny_engine

RUNS = 100
WARM = SamplingParams(0.7, 50, 0.9, 0.0, 1.1)


def some_settings(made: random.Random) -> SamplingParams:
    return made.choice(
        [
            SamplingParams(),
            SamplingParams(temperature=0),
            SamplingParams(temperature=0, repetition_penalty=made.choice([0.3, 1.5])),
            SamplingParams(temperature=made.choice([1e-40, 0.01, 0.5, 5, 1e6])),
            SamplingParams(top_k=made.choice([1, 2, 50, 300, 1000])),
            SamplingParams(top_p=made.choice([0, 0.01, 0.5, 0.9, 0.999999])),
            SamplingParams(min_p=made.choice([1e-9, 0.1, 1])),
            SamplingParams(repetition_penalty=made.choice([1e-9, 1.1, 1e30])),
            SamplingParams(made.uniform(0.05, 2), made.randint(1, 300), made.random(), 0.01, made.uniform(0.8, 1.6)),
        ]
    )


def some_rules(made: random.Random) -> StopRules:
    return StopRules(
        use_end_ids=made.random() < 0.5,
        max_new_tokens=made.choice([4, 50]),
        stop_strings=made.choice([(), ("a",), ("ab", "qq", "x\n")]),
        max_kv_bytes=made.choice([0, 20_000, 10**7]),
    )


def something_else(session: DecodeSession, made: random.Random) -> DecodeSession:
    """Whatever somebody may do on the page between two steps."""
    some_step = made.randrange(len(session.records))
    acts: list[Callable[[], Future[Any]]] = [
        lambda: session.force(made.randrange(300)),
        lambda: session.configure(sampling=some_settings(made), seed=made.randrange(99)),
        lambda: session.configure(stop=some_rules(made)),
        session.release,
        lambda: session.rewind(some_step),
        lambda: session.fork(some_step),
        lambda: session.engine.resume(session.recipe, session.roles),
        lambda: session.stop(made.choice(["user", "disconnect"])),
    ]
    found = made.choice(acts)().result()
    return found if isinstance(found, DecodeSession) else session


def turns(session: DecodeSession, made: random.Random) -> DecodeSession:
    """Some steps, with other things in between."""
    for _ in range(made.choice([0, 2, 6])):
        if made.random() < 0.6:
            session = something_else(session, made)
        try:
            session.step().result()
        except SessionFinished:
            session.configure(stop=StopRules()).result()
            session.rewind(0).result()
    return session


@pytest.fixture(scope="module")
def engines() -> Iterator[list[LLMEngine]]:
    made = [
        tiny_engine(end_ids=(7,), prefill_chunk=3, capture_bytes=0),
        tiny_engine("gemma2", end_ids=(2, 9), fast_kernels=True),
        tiny_engine("gpt_oss"),
        tiny_engine(fast_kernels=True, context_limit=None),
    ]
    yield made
    for engine in made:
        engine.close()


@pytest.mark.parametrize("seed", range(RUNS))
def test_a_healthy_run_passes_every_check(engines, seed):
    made = random.Random(seed)
    engine = engines[seed % len(engines)]
    session = engine.create_session(sampling=some_settings(made), seed=made.randrange(2**63), stop=some_rules(made))
    session.prefill(tuple(made.randrange(3, 300) for _ in range(made.choice([1, 2, 7, 40])))).result()
    if made.random() < 0.4:  # a batch: others step in the same forward pass
        other = engine.create_session(seed=seed)
        other.prefill((5, 6, 7)).result()
        for step in [session.step(), other.step()]:
            step.exception()
        other.close().result()
    session = turns(session, made)
    assert {check.name: check.compared for check in check_numbers(session).result() if not check.passed} == {}
    session.close().result()


@pytest.mark.slow
def test_healthy_runs_of_the_bundled_model_pass_every_check():
    engine = LLMEngine.start(EngineConfig())
    prompts = ("The cat sat on the", "the the the the the the", "The cat sat on the")
    for prompt, settings in zip(prompts, (SamplingParams(), SamplingParams(temperature=0), WARM), strict=True):
        session = engine.create_session(sampling=settings, seed=1)
        session.prefill(engine.tokenizer.encode(prompt)).result()
        for _ in range(12):
            session.step().result()
        assert {check.name: check.compared for check in check_numbers(session).result() if not check.passed} == {}
        session.close().result()
    engine.close()
