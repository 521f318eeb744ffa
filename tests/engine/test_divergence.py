"""KL divergence over a whole vocabulary, against sums by hand and stock transformers in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from engine.config import EngineConfig, SamplingParams
from engine.divergence import divergence, log_softmax
from engine.llm_engine import LLMEngine
from tests.engine.architectures import tiny_engine
from tests.engine.holding import hold

PLAIN = SamplingParams(temperature=0.7, repetition_penalty=1.0, top_k=0, top_p=1.0, min_p=0.0)


def logs(*probs: float) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(np.array(probs))


def test_three_tokens_by_hand():
    one, other = logs(0.5, 0.25, 0.25), logs(0.25, 0.5, 0.25)
    assert divergence(one, other).kl_bits == pytest.approx(0.5 * 1 - 0.25 * 1)
    assert divergence(other, one).kl_bits == pytest.approx(0.25)
    assert divergence(one, logs(0.125, 0.375, 0.5)).kl_bits == pytest.approx(
        0.5 * math.log2(4) + 0.25 * math.log2(2 / 3) + 0.25 * math.log2(1 / 2)
    )
    assert divergence(one, one).kl_bits == 0


def test_where_the_other_lacks_a_token_it_is_infinite_and_the_mass_is_told():
    one, other = logs(0.5, 0.3, 0.2), logs(0.8, 0.0, 0.2)
    there, back = divergence(one, other), divergence(other, one)
    assert there.kl_bits is None
    assert there.unshared == pytest.approx(0.3)
    assert back.kl_bits == pytest.approx(0.8 * math.log2(0.8 / 0.5))
    assert back.unshared == 0


def test_a_softmax_of_large_and_cut_scores_adds_up_to_one():
    found = log_softmax(np.array([1e4, 1e4 - 1, -np.inf], dtype=np.float32))
    np.testing.assert_allclose(np.exp(found), [1 / (1 + math.exp(-1)), math.exp(-1) / (1 + math.exp(-1)), 0])


def oracle(engine: LLMEngine, ids: tuple[int, ...], temperature: float) -> tuple[np.ndarray, np.ndarray]:
    """Raw and final probabilities (V,) of stock transformers, without a cache, in float64 from the logits on."""
    with torch.inference_mode():
        logits = engine.stock(torch.tensor([ids])).logits[0, -1].double().numpy()
    weights = [np.exp(scores - scores.max()) for scores in (logits, logits / temperature)]
    return weights[0] / weights[0].sum(), weights[1] / weights[1].sum()


def kl_by_hand(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.sum(one * (np.log2(one) - np.log2(other))))


def check_against_stock(engine: LLMEngine, prompt: tuple[int, ...]) -> None:
    first = engine.create_session(sampling=PLAIN, seed=3)
    first.prefill(prompt).result()
    second = first.fork(0).result()
    second.force(int(first.records[0].candidates.ids[5])).result()
    for session in (first, second):
        for _ in range(2):
            session.step().result()
    before = [(session.recipe, session.epoch, session.records) for session in (first, second)]
    found = [session.distributions(2).result() for session in (first, second)]
    assert [(session.recipe, session.epoch, session.records) for session in (first, second)] == before
    wanted = [oracle(engine, s.recipe.token_ids[: s.records[2].kv_len], PLAIN.temperature) for s in (first, second)]
    for kind, rows in enumerate(([d.raw for d in found], [d.final for d in found])):
        for own, other in ((0, 1), (1, 0)):
            kl = divergence(rows[own], rows[other]).kl_bits
            assert kl is not None
            by_hand = kl_by_hand(wanted[own][kind], wanted[other][kind])
            assert by_hand > 1e-6
            assert kl == pytest.approx(by_hand, rel=2e-3, abs=1e-6)
            np.testing.assert_allclose(np.exp(rows[own]), wanted[own][kind], atol=2e-5)


def test_two_branches_of_a_tiny_model_lie_as_far_apart_as_stock_transformers_says():
    engine = tiny_engine()
    try:
        check_against_stock(engine, (40, 50, 60, 70))
    finally:
        engine.close()


@pytest.mark.slow
def test_two_branches_of_the_bundled_model_lie_as_far_apart_as_stock_transformers_says(bundled):
    engine = LLMEngine(bundled, EngineConfig(device="cpu", dtype="float32"))
    try:
        check_against_stock(engine, tuple(engine.tokenizer.encode("The cat sat on the").ids))
    finally:
        engine.close()


@pytest.mark.parametrize("held", [True, False])
def test_sessions_that_step_together_share_every_forward(held: bool):
    engine = tiny_engine()
    try:
        first, second = (engine.create_session(sampling=PLAIN, seed=seed) for seed in (1, 2))
        for session in (first, second):
            session.prefill((40, 50, 60)).result()
        for _ in range(30):  # the engine idles and wakes up each time, so no luck is involved
            release = hold(engine) if held else None
            asked = first.step_with([second])
            if release is not None:
                release.set()
            assert [future.result().batch_size for future in asked] == [2, 2]
    finally:
        engine.close()
