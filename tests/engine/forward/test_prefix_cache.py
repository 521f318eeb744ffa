"""The same prompt is prefilled once, whoever opens it; what is copied is what a prefill would have given."""

from __future__ import annotations

from concurrent.futures import Future

import numpy as np
import pytest
import torch

from engine.config import SamplingParams
from engine.errors import SessionError
from engine.forward.capture import Capture
from engine.forward.kv_store import KVStore
from engine.forward.prefix_cache import PrefixCache
from engine.llm_engine import LLMEngine
from engine.records import StepRecord
from tests.engine.architectures import tiny_engine
from tests.engine.holding import hold

WARM = SamplingParams(temperature=0.9, top_k=40)
PROMPT = tuple(range(10, 50))
ROW = Capture(torch.zeros(10), {})  # 40 bytes


def store(length: int) -> KVStore:
    """64 tokens of room whatever the length, 2 x 4 bytes each: 512 bytes."""
    made = KVStore(1)
    made.append(0, torch.ones(1, length, 1), torch.ones(1, length, 1))
    made.advance(length)
    return made


def forwards(engine: LLMEngine, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Tokens fed by every forward from now on."""
    fed: list[int] = []
    run = engine.stepper.runner.forward

    def counted(batch, **how):
        fed.append(sum(len(feed.token_ids) for feed in batch))
        return run(batch, **how)

    monkeypatch.setattr(engine.stepper.runner, "forward", counted)
    return fed


def opened(engine: LLMEngine, prompt: tuple[int, ...], steps: int = 3) -> list[StepRecord]:
    session = engine.create_session(sampling=WARM, seed=5)
    return [session.prefill(prompt).result(), *(session.step().result() for _ in range(steps))]


def assert_same_bits(ours: list[StepRecord], theirs: list[StepRecord]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        assert (one.emitted_ids, one.draw, one.kv_len, one.kv_bytes) == (
            other.emitted_ids,
            other.draw,
            other.kv_len,
            other.kv_bytes,
        )
        assert np.array_equal(one.candidates.logits, other.candidates.logits)
        assert np.array_equal(one.kv_norms, other.kv_norms)


@pytest.fixture
def engine():
    made = tiny_engine(prefill_chunk=16)
    yield made
    made.close()


@pytest.fixture
def plain():
    made = tiny_engine(prefill_chunk=16, prefix_bytes=0)
    yield made
    made.close()


def test_the_same_prompt_again_runs_no_forward_and_gives_the_same_bits(engine, plain, monkeypatch):
    fed = forwards(engine, monkeypatch)
    opened(engine, PROMPT)
    assert fed == [16, 16, 8, 1, 1, 1]
    again = opened(engine, PROMPT)
    assert fed[6:] == [1, 1, 1]
    assert_same_bits(again, opened(plain, PROMPT))


def test_a_prompt_that_begins_the_same_takes_over_whole_chunks_and_gives_the_same_bits(engine, plain, monkeypatch):
    opened(engine, PROMPT)
    other = (*PROMPT[:35], 99, 98, 97)
    fed = forwards(engine, monkeypatch)
    shared = opened(engine, other, steps=0)
    assert fed == [6], "32 of 38 tokens are two whole chunks"
    assert shared[0].reused_tokens == 32
    assert_same_bits(opened(engine, other), opened(plain, other))


def test_the_record_says_what_was_reused_and_what_was_spent(engine):
    first, again = (opened(engine, PROMPT, steps=0)[0] for _ in range(2))
    assert (first.reused_tokens, first.logit_rows) == (0, 1)
    assert (again.reused_tokens, again.logit_rows, again.input_ids) == (40, 0, PROMPT)
    assert first.timing.forward_ms > 0
    assert again.timing.forward_ms == 0


def test_thirty_sessions_that_open_the_same_prompt_together_prefill_it_once(engine, monkeypatch):
    fed = forwards(engine, monkeypatch)
    sessions = [engine.create_session(sampling=WARM, seed=i) for i in range(30)]
    release = hold(engine)
    futures: list[Future[StepRecord]] = [session.prefill(PROMPT) for session in sessions]
    release.set()
    records = [f.result(timeout=60) for f in futures]
    assert fed == [16, 16, 8]
    assert [r.reused_tokens for r in records] == [0] + [40] * 29
    assert len({r.emitted_ids for r in records}) > 1, "each draws with its own seed"


def test_when_the_first_gives_up_the_next_prefills(engine):
    first, second = (engine.create_session(sampling=WARM, seed=5) for _ in range(2))
    release = hold(engine)
    futures = [session.prefill(PROMPT) for session in (first, second)]
    first.cancel()
    release.set()
    with pytest.raises(SessionError, match="cancelled"):
        futures[0].result(timeout=60)
    assert futures[1].result(timeout=60).reused_tokens == 0


def test_a_session_that_goes_on_from_a_copy_leaves_the_kept_prompt_alone(engine):
    opened(engine, PROMPT, steps=20)
    kept = opened(engine, PROMPT, steps=20)
    assert_same_bits(opened(engine, PROMPT, steps=20), kept)


def test_looking_at_the_first_step_of_a_copy_shows_what_the_first_session_sees(engine):
    sessions = [engine.create_session(sampling=WARM) for _ in range(2)]
    for session in sessions:
        session.prefill(PROMPT).result()
    rows = [session.attention(0).result() for session in sessions]
    assert np.array_equal(*rows)


def test_bytes_are_counted_once_and_the_least_recently_used_prompt_goes_first():
    cache = PrefixCache(1200)  # two snapshots of 512 + 40 bytes
    cache.put((1,), store(1), ROW)
    cache.put((2,), store(1), ROW)
    assert cache.num_bytes <= 1104
    cache.put((2,), store(1), ROW)
    size = cache.num_bytes
    assert cache.find((1,)) is not None
    cache.budget = size
    cache.put((3,), store(1), ROW)
    assert [cache.find(ids) is not None for ids in ((1,), (2,), (3,))] == [True, False, True]
    assert cache.num_bytes == size


def test_a_prompt_that_is_larger_than_the_budget_drops_no_other():
    cache = PrefixCache(600)
    cache.put((1,), store(1), ROW)
    cache.put(tuple(range(100)), store(100), ROW)
    assert cache.find((1,)) is not None
    assert cache.find(tuple(range(100))) is None


def test_a_budget_of_0_keeps_nothing(plain, monkeypatch):
    fed = forwards(plain, monkeypatch)
    records = [opened(plain, PROMPT, steps=0)[0] for _ in range(2)]
    assert [r.reused_tokens for r in records] == [0, 0]
    assert fed == [16, 16, 8] * 2


def test_a_prompt_of_whole_chunks_inside_a_kept_one_still_feeds_its_last_chunk(engine, monkeypatch):
    opened(engine, PROMPT, steps=0)
    fed = forwards(engine, monkeypatch)
    assert opened(engine, PROMPT[:32], steps=0)[0].reused_tokens == 16
    assert fed == [16]
