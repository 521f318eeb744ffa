"""Changing the first token moves every later key above layer 0, none in layer 0, and never the session itself."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from transformers import DynamicCache

from engine.errors import LoupeError, NotPrefilled, UnknownToken
from engine.forward.kv_store import KVStore
from engine.llm_engine import LLMEngine
from engine.session import DecodeSession
from engine.studies import key_change
from engine.studies.key_change import change_first_token
from tests.engine.architectures import tiny_engine, tiny_model

PROMPT, OTHER = (40, 50, 60, 70, 80), 99


def nobody(done: int, total: int) -> None:
    """A report that nobody reads."""


def stock_cache(name: str, ids: tuple[int, ...]) -> torch.Tensor:
    """(2, L, G, N, D): keys and values as stock transformers caches them."""
    cache = DynamicCache()
    tiny_model(name)(input_ids=torch.tensor([ids]), cache=cache, use_cache=True)
    return torch.stack(
        [torch.stack([getattr(layer, kind)[0] for layer in cache.layers]) for kind in ("keys", "values")]
    )


def relative(before: torch.Tensor, after: torch.Tensor) -> np.ndarray:
    """(2, L, N) |after - before| / |before| over heads and width, in float64."""
    a, b = before.double().numpy(), after.double().numpy()
    return np.sqrt(((b - a) ** 2).sum((2, 4)) / (a**2).sum((2, 4)))


@pytest.fixture
def engine() -> Iterator[LLMEngine]:
    made = tiny_engine()
    yield made
    made.close()


@pytest.fixture
def session(engine: LLMEngine) -> DecodeSession:
    made = engine.create_session()
    made.prefill(PROMPT).result()
    for _ in range(3):
        made.step().result()
    return made


@pytest.mark.parametrize("name", ["llama", "gpt2", "gemma2"])
def test_what_moved_is_what_stock_transformers_caches_differently(name: str):
    engine = tiny_engine(name)
    try:
        session = engine.create_session()
        session.prefill(PROMPT).result()
        found = change_first_token(session, OTHER, nobody).result()
    finally:
        engine.close()
    expected = relative(stock_cache(name, PROMPT), stock_cache(name, (OTHER, *PROMPT[1:])))
    assert found.moved.shape == expected.shape == (2, found.moved.shape[1], len(PROMPT))
    np.testing.assert_allclose(found.moved, expected, rtol=1e-4, atol=1e-5)


def test_in_layer_0_only_the_changed_position_moves_and_above_it_all_do(session):
    found = change_first_token(session, OTHER, nobody).result()
    later = slice(1, None)
    assert found.same_bits[:, 0, later].all(), "layer 0 reads the token's own embedding and nothing else"
    assert (found.moved[:, 0, later] == 0).all()
    assert not found.same_bits[:, 0, 0].any()
    assert not found.same_bits[:, 1:, later].any()
    assert (found.moved[:, 1:, later] > 100 * found.rounding[:, 1:, later]).all(), "far above rounding"


def test_one_number_that_differs_is_a_key_that_moved():
    before, after = KVStore(1), KVStore(1)
    keys = torch.ones(2, 3, 4)  # 2 heads, 3 positions, 4 wide
    moved = keys.clone()
    moved[1, 2, 3] += 2.0
    for store, own in ((before, keys), (after, moved)):
        store.append(0, own, keys)
        store.advance(3)
    change, same = key_change._compared(before, after, 3)
    assert same.tolist() == [[[True, True, False]], [[True, True, True]]]
    assert change[0, 0].tolist() == pytest.approx([0, 0, 2 / 8**0.5])  # 8 numbers of 1: a length of the root of 8


def test_the_session_and_the_shared_prompts_stay_as_they_were(session):
    before, shared = session.snapshot, session.engine.stepper.prefixes.num_bytes
    kv = session.run(lambda state: (yield) or state.store.view(1, state.store.length)[0].clone()).result()
    change_first_token(session, OTHER, nobody).result()
    after = session.run(lambda state: (yield) or state.store.view(1, state.store.length)[0].clone()).result()
    assert session.snapshot.recipe == before.recipe
    assert session.snapshot.records == before.records
    assert torch.equal(kv, after)
    assert session.engine.stepper.prefixes.num_bytes == shared
    assert session.step().result().kv_len == len(PROMPT) + 4


def test_generated_tokens_are_part_of_the_copy(session):
    found = change_first_token(session, OTHER, nobody).result()
    assert found.token_ids == session.recipe.token_ids[:-1]
    assert (found.position, found.before_id, found.after_id) == (0, PROMPT[0], OTHER)
    assert found.rounding.max() < 1e-5


def test_a_long_session_is_looked_at_as_far_as_the_picture_goes(session):
    found = change_first_token(session, OTHER, nobody, most=3).result()
    assert found.moved.shape == (2, 2, 3)


def test_the_work_says_how_far_it_is_and_can_be_ended(session):
    seen: list[tuple[int, int]] = []

    def report(done: int, total: int) -> None:
        seen.append((done, total))
        if done > 8:
            raise LoupeError("enough")

    with pytest.raises(LoupeError, match="enough"):
        change_first_token(session, OTHER, report).result()
    assert seen == [(8, 16), (16, 16)]
    assert session.step().result().kv_len == len(PROMPT) + 4


def test_no_such_token_and_the_same_token_are_refused_in_words(session):
    with pytest.raises(UnknownToken, match="no token 300"):
        change_first_token(session, 300, nobody).result()
    with pytest.raises(UnknownToken, match="stands first already"):
        change_first_token(session, PROMPT[0], nobody).result()


def test_without_a_prompt_there_is_nothing_to_change(engine):
    with pytest.raises(NotPrefilled):
        change_first_token(engine.create_session(), OTHER, nobody).result()
