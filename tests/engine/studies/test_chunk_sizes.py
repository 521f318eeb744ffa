"""A prompt in pieces of every size: the cache is the same but for rounding, and the rounding is told."""

from __future__ import annotations

import pytest
import torch
from transformers import DynamicCache

from engine.errors import InvalidSettings
from engine.forward.kv_store import KVStore
from engine.forward.model_runner import ModelRunner
from engine.studies.chunk_sizes import Chunks, ChunkStudy, sizes_of
from tests.engine.architectures import ARCHITECTURES, tiny_model

PROMPT = tuple(int(i) for i in torch.randint(3, 300, (20,), generator=torch.Generator().manual_seed(2)))
FP32 = 1e-5


@pytest.fixture(autouse=True)
def _no_grad():
    with torch.inference_mode():
        yield


def nobody(_done: int, _total: int) -> None: ...


def finished(chunks: Chunks, runner: ModelRunner) -> ChunkStudy:
    for _ in chunks.run(runner, nobody):
        pass
    return chunks.study


def test_sizes_are_the_whole_and_the_powers_of_two_below_it():
    assert sizes_of(20) == (20, 16, 8, 4, 2, 1)
    assert sizes_of(16) == (16, 8, 4, 2, 1)
    assert sizes_of(1) == (1,)


def test_20_tokens_are_1_forward_or_20():
    runs = finished(Chunks(PROMPT), ModelRunner(tiny_model("llama"))).runs
    assert [(run.chunk, run.forwards) for run in runs] == [(20, 1), (16, 2), (8, 3), (4, 5), (2, 10), (1, 20)]
    assert all(len(run.rounds_ms) == 2 and min(run.rounds_ms) > 0 for run in runs)
    assert runs[-1].per_forward_ms == pytest.approx(min(runs[-1].rounds_ms) / 20)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_size_leaves_the_cache_of_one_sweep_but_for_rounding(name):
    study = finished(Chunks(PROMPT, rounds=1), ModelRunner(tiny_model(name)))
    assert study.runs[0].kv_difference == study.runs[0].logit_difference == 0
    assert max(run.kv_difference for run in study.runs) < FP32
    assert max(run.logit_difference for run in study.runs) < FP32
    assert max(run.logit_difference for run in study.runs) > 0  # sums in another order


def test_the_largest_cached_number_is_that_of_transformers_own_cache():
    study = finished(Chunks(PROMPT, rounds=1), ModelRunner(tiny_model("llama")))
    cache = DynamicCache()
    tiny_model("llama")(input_ids=torch.tensor([PROMPT]), cache=cache, use_cache=True)
    largest = max(float(t.abs().max()) for layer in cache.layers for t in (layer.keys, layer.values))
    assert study.kv_largest == pytest.approx(largest, abs=FP32)


def test_a_cache_that_differs_is_found(monkeypatch):
    runner, stores = ModelRunner(tiny_model("llama")), []

    def new_store() -> KVStore:
        stores.append(ModelRunner.new_store(runner))
        return stores[-1]

    monkeypatch.setattr(runner, "new_store", new_store)
    chunks = Chunks(PROMPT, rounds=1)
    pieces = chunks.run(runner, nobody)
    while not (stores and stores[-1].length == 16):  # after the first piece of the second size
        next(pieces)
    stores[-1].view(1, 16)[1][0, 3, 5] += 7.0
    for _ in pieces:
        pass
    assert chunks.study.runs[1].kv_difference == pytest.approx(7.0, rel=1e-5)
    assert chunks.study.runs[2].kv_difference < FP32


def test_the_second_round_runs_backwards_and_progress_counts_forwards():
    fed: list[int] = []

    class Listening(ModelRunner):
        def forward(self, batch, **settings):
            fed.append(len(batch[0].token_ids))
            return super().forward(batch, **settings)

    seen: list[tuple[int, int]] = []
    for _ in Chunks(PROMPT[:4]).run(Listening(tiny_model("llama")), lambda done, total: seen.append((done, total))):
        pass
    assert fed == [4, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 4]
    assert seen == [(done, 14) for done in range(1, 15)]


def test_a_study_begun_again_keeps_no_round_of_the_first_attempt():
    chunks, runner = Chunks(PROMPT[:4]), ModelRunner(tiny_model("llama"))
    pieces = chunks.run(runner, nobody)
    while not chunks.study.runs[0].rounds_ms:
        next(pieces)
    assert [len(run.rounds_ms) for run in finished(chunks, runner).runs] == [2, 2, 2]


def test_stopping_keeps_the_sizes_that_are_done():
    chunks = Chunks(PROMPT)
    pieces = chunks.run(ModelRunner(tiny_model("llama")), nobody)
    while not chunks.study.runs[1].rounds_ms:
        next(pieces)
    next(pieces)  # within the third size
    chunks.stop()
    with pytest.raises(StopIteration) as ended:
        next(pieces)
    assert ended.value.value == chunks.study
    assert [len(run.rounds_ms) for run in chunks.study.runs] == [1, 1, 0, 0, 0, 0]


@pytest.mark.parametrize(("prompt", "rounds", "words"), [((), 2, "empty"), ((1,), 0, "got 0")])
def test_a_study_that_cannot_be_is_refused_in_words(prompt, rounds, words):
    with pytest.raises(InvalidSettings, match=words):
        Chunks(prompt, rounds)
