"""A decode step of many sessions: each gets what it gets alone, and nobody's numbers reach another."""

from __future__ import annotations

import pytest
import torch

from engine.forward import attention, ragged
from engine.forward.attention import row_weights, rows_of_layers
from engine.forward.kv_store import FIRST_CAPACITY, KVStore
from engine.forward.model_runner import Feed, ModelRunner
from tests.engine.architectures import tiny_model

FP32 = 1e-5  # logits and weights here are of size 1
LENGTHS = (40, 3, 70, 12, 33)  # three buckets, two of them with more than one session


@pytest.fixture(autouse=True)
def _no_grad():
    with torch.inference_mode():
        yield


def prefilled(runner: ModelRunner, lengths: tuple[int, ...] = LENGTHS) -> list[KVStore]:
    stores = [runner.new_store() for _ in lengths]
    for store, length in zip(stores, lengths, strict=True):
        runner.forward([Feed(store, tuple(3 + (7 * i + length) % 290 for i in range(length)))])
    return stores


def assert_batch_equals_alone(runner: ModelRunner, together: list[KVStore], alone: list[KVStore]) -> None:
    batch = runner.forward([Feed(store, (9,)) for store in together]).rows
    for row, mine, other in zip(batch, together, alone, strict=True):
        solo = runner.forward([Feed(other, (9,))]).rows[0]
        torch.testing.assert_close(row.logits, solo.logits, atol=FP32, rtol=0)
        for layer in range(runner.num_layers):
            ours, theirs = mine.view(layer, mine.length), other.view(layer, other.length)
            torch.testing.assert_close(ours, theirs, atol=FP32, rtol=0)
            weights = row_weights(row.queries[layer], ours[0])
            torch.testing.assert_close(weights, row_weights(solo.queries[layer], theirs[0]), atol=FP32, rtol=0)


@pytest.mark.parametrize("name", ["llama", "qwen3", "gemma2", "gpt_oss", "llama4_text", "mistral"])
@pytest.mark.parametrize("longest", [0, 64, 256])  # all alone, the longest alone, all in groups
def test_queries_caches_and_logits_of_a_batch_are_those_of_each_session_alone(name, longest, monkeypatch):
    monkeypatch.setattr(ragged, "LONGEST_COPIED", longest)
    runner = ModelRunner(tiny_model(name))
    assert runner.layers_are_alike
    assert_batch_equals_alone(runner, prefilled(runner), prefilled(runner))


@pytest.mark.parametrize("name", ["llama", "mistral"])
def test_one_padded_fused_call_as_on_a_gpu_gives_the_same(name, monkeypatch):
    buckets, calls = ragged._buckets, []
    monkeypatch.setattr(ragged, "_buckets", lambda lengths, *, copy_all: buckets(lengths, copy_all=True))
    monkeypatch.setattr(ragged, "by_products", lambda *_: calls.append(1) and False)
    runner = ModelRunner(tiny_model(name))
    together, alone = prefilled(runner), prefilled(runner)
    assert_batch_equals_alone(runner, together, alone)
    assert len(calls) == runner.num_layers


def test_attention_over_three_keys_equals_the_formula_in_float64():
    query, keys, values = torch.randn(2, 6, 1, 8), torch.randn(2, 3, 3, 8), torch.randn(2, 3, 3, 8)
    visible = torch.tensor([[True, True, False], [True, True, True]])[:, None, None]
    out = torch.matmul(ragged.group_weights(query, keys, visible, 0.3, 5.0, None), values).view(query.shape)
    key, value = keys[0, 2, :2].double(), values[0, 2, :2].double()  # session 0 sees two keys; head 5 reads key head 2
    weights = (5 * torch.tanh(0.3 * key @ query[0, 5, 0].double() / 5)).softmax(0)
    torch.testing.assert_close(out[0, 5, 0].double(), weights @ value, atol=1e-6, rtol=0)


def test_lengths_within_a_factor_of_two_go_together_and_those_over_256_alone():
    rows = ragged._buckets((3, 32, 33, 64, 257, 300, 256, 200), copy_all=False)
    assert list(rows) == [[0, 1], [2, 3], [4], [5], [6, 7]]


def test_a_session_full_of_nan_does_not_reach_its_neighbours():
    runner = ModelRunner(tiny_model("llama"))
    together, alone = prefilled(runner, (20, 9)), prefilled(runner, (20, 9))
    together[0].view(0, 20)[0].fill_(float("nan"))
    batch = runner.forward([Feed(store, (9,)) for store in together]).rows
    solo = runner.forward([Feed(alone[1], (9,))]).rows[0]
    assert batch[0].logits.isnan().all()
    torch.testing.assert_close(batch[1].logits, solo.logits, atol=FP32, rtol=0)


def test_a_batch_grows_the_one_store_that_is_full_and_keeps_its_tokens():
    runner = ModelRunner(tiny_model("llama"))
    lengths = (FIRST_CAPACITY, 5)
    together, alone = prefilled(runner, lengths), prefilled(runner, lengths)
    before = [store.reserved_bytes for store in together]
    assert_batch_equals_alone(runner, together, alone)
    assert [store.reserved_bytes for store in together] == [2 * before[0], before[1]]


def test_a_batch_that_fails_half_way_leaves_every_cache_as_it_was():
    runner = ModelRunner(tiny_model("llama"))
    together, alone = prefilled(runner), prefilled(runner)
    norm = runner.model.model.norm
    hook = norm.register_forward_pre_hook(lambda *_: 1 / 0)  # after all layers have appended
    with pytest.raises(ZeroDivisionError):
        runner.forward([Feed(store, (200,)) for store in together])
    hook.remove()
    assert [store.length for store in together] == list(LENGTHS)
    assert_batch_equals_alone(runner, together, alone)


def test_a_kept_query_holds_its_own_bytes_and_not_the_batchs():
    runner = ModelRunner(tiny_model("llama"))
    row = runner.forward([Feed(store, (9,)) for store in prefilled(runner)]).rows[1]
    query = row.queries[0].query
    assert query.untyped_storage().nbytes() == runner.num_layers * query.numel() * query.element_size()


def test_latent_attention_keeps_the_layers_apart():
    runner = ModelRunner(tiny_model("deepseek_v3"))
    assert not runner.layers_are_alike
    assert runner.new_store().alike is False


@pytest.mark.parametrize(
    "name", ["llama", "gemma2", "gpt_oss", "mistral"]
)  # plain; capped and windowed; sinks; windowed
@pytest.mark.parametrize("copied", [0, 10**9])  # layer by layer, together where that can be
def test_rows_of_all_layers_are_each_layers_own_row(name, copied, monkeypatch):
    monkeypatch.setattr(attention, "COPIED_BYTES", copied)
    runner = ModelRunner(tiny_model(name))
    (store,) = prefilled(runner, (70,))
    queries = runner.forward([Feed(store, (9,))]).rows[0].queries
    keys = [store.view(layer, store.length)[0] for layer in range(runner.num_layers)]
    together = rows_of_layers([queries[layer] for layer in range(runner.num_layers)], keys)
    for layer, row in enumerate(together):
        torch.testing.assert_close(row, row_weights(queries[layer], keys[layer]), atol=1e-6, rtol=0)
