"""Every supported architecture: same numbers as stock transformers in eager mode, alone and in a ragged batch."""

from __future__ import annotations

import pytest
import torch
from transformers import DynamicCache, GenerationConfig, PreTrainedModel

from engine.errors import UnsupportedModel
from engine.forward.attention import attention_weights, row_weights
from engine.forward.kv_store import KVStore
from engine.forward.model_runner import Feed, ModelRunner
from engine.models.loaded_shape import shape_of
from tests.engine.architectures import ARCHITECTURES, REFUSED, tiny_model

PROMPT = tuple(int(i) for i in torch.randint(3, 300, (15,), generator=torch.Generator().manual_seed(2)))
NEXT = tuple(int(i) for i in torch.randint(3, 300, (5,), generator=torch.Generator().manual_seed(3)))
FP32 = 1e-5  # logits and weights here are of size 1

every_architecture = pytest.mark.parametrize("name", ARCHITECTURES)


@pytest.fixture(autouse=True)
def _no_grad():
    with torch.inference_mode():
        yield


def eager_steps(model: PreTrainedModel) -> tuple[list[torch.Tensor], list[list[torch.Tensor]]]:
    """Stock logits (V,) and attention rows per layer (H, K) of each decode step after PROMPT."""
    cache = DynamicCache()
    model(input_ids=torch.tensor([PROMPT]), cache=cache, use_cache=True)
    logits, rows = [], []
    for token_id in NEXT:
        out = model(input_ids=torch.tensor([[token_id]]), cache=cache, use_cache=True, output_attentions=True)
        logits.append(out.logits[0, -1])
        rows.append([w[0, :, -1] for w in out.attentions])
    return logits, rows


def rows_of(runner: ModelRunner, store: KVStore, queries: dict, token_id: int) -> list[torch.Tensor]:
    """Recomputed rows of the newest step: from its queries, or by replay where keys are expanded after caching."""
    if runner.keys_are_cached:
        return [row_weights(queries[layer], store.view(layer, store.length)[0]) for layer in range(runner.num_layers)]
    layers = frozenset(range(runner.num_layers))
    weights = runner.replay(store, [token_id], store.length - 1, weights_of=layers).weights
    return [weights[layer][:, -1] for layer in range(runner.num_layers)]


@every_architecture
def test_logits_and_every_attention_row_equal_eager_at_every_step(name):
    expected_logits, expected_rows = eager_steps(tiny_model(name))
    runner = ModelRunner(tiny_model(name))
    store = runner.new_store()
    runner.forward([Feed(store, PROMPT)])
    for token_id, logits, rows in zip(NEXT, expected_logits, expected_rows, strict=True):
        row = runner.forward([Feed(store, (token_id,))]).rows[0]
        torch.testing.assert_close(row.logits[-1], logits, atol=FP32, rtol=0)
        for ours, theirs in zip(rows_of(runner, store, row.queries, token_id), rows, strict=True):
            torch.testing.assert_close(ours, theirs, atol=FP32, rtol=0)


@every_architecture
def test_replayed_prompt_map_equals_eager(name):
    stock = tiny_model(name)
    expected = stock(input_ids=torch.tensor([PROMPT]), output_attentions=True).attentions
    runner = ModelRunner(tiny_model(name))
    store = runner.new_store()
    runner.forward([Feed(store, PROMPT)])
    weights = runner.replay(store, PROMPT, 0, weights_of=frozenset(range(runner.num_layers))).weights
    assert store.length == len(PROMPT)
    for layer, theirs in enumerate(expected):
        torch.testing.assert_close(weights[layer], theirs[0], atol=FP32, rtol=0)


@every_architecture
def test_four_sessions_of_different_lengths_in_one_forward_equal_each_alone(name):
    runner = ModelRunner(tiny_model(name))
    prompts = [PROMPT[:3], PROMPT[:11], PROMPT, PROMPT[:7]]
    together = [runner.new_store() for _ in prompts]
    alone = [runner.new_store() for _ in prompts]
    for prompt, mine, other in zip(prompts, together, alone, strict=True):
        half = len(prompt) // 2
        runner.forward([Feed(mine, prompt[:half])])  # chunked prefill on this side
        runner.forward([Feed(mine, prompt[half:])])
        runner.forward([Feed(other, prompt)])
    for token_id in NEXT:
        batch = runner.forward([Feed(store, (token_id,)) for store in together]).rows
        for row, store in zip(batch, alone, strict=True):
            solo = runner.forward([Feed(store, (token_id,))]).rows[0]
            torch.testing.assert_close(row.logits, solo.logits, atol=FP32, rtol=0)


@every_architecture
def test_cache_bytes_by_formula_by_our_tensors_and_by_transformers_are_one_number(name):
    stock = tiny_model(name)
    cache = DynamicCache()
    stock(input_ids=torch.tensor([PROMPT]), cache=cache, use_cache=True)
    theirs = sum(t.nelement() * t.element_size() for layer in cache.layers for t in (layer.keys, layer.values))
    runner = ModelRunner(stock)
    store = runner.new_store()
    runner.forward([Feed(store, PROMPT)])
    formula = len(PROMPT) * shape_of(stock.config).kv_bytes_per_token(4)
    assert store.live_bytes == formula == theirs


@every_architecture
def test_greedy_ids_equal_generate(name):
    plain = GenerationConfig(do_sample=False, max_new_tokens=12, eos_token_id=None, pad_token_id=0)
    ids = torch.tensor([PROMPT])
    expected = tiny_model(name).generate(ids, attention_mask=torch.ones_like(ids), generation_config=plain)
    runner = ModelRunner(tiny_model(name))
    store, feed, drawn = runner.new_store(), PROMPT, []
    for _ in range(12):
        feed = (int(runner.forward([Feed(store, feed)]).rows[0].logits[-1].argmax()),)
        drawn += feed
    assert drawn == expected[0, len(PROMPT) :].tolist()


@pytest.mark.parametrize("name", REFUSED)
def test_an_architecture_that_hides_its_attention_is_refused_with_a_way_out(name):
    with pytest.raises(UnsupportedModel, match=r"Choose a model"):
        ModelRunner(tiny_model(name))


def test_a_window_of_8_sees_itself_and_7_before_and_the_cache_keeps_all_12():
    runner = ModelRunner(tiny_model("mistral"))
    store = runner.new_store()
    row = runner.forward([Feed(store, PROMPT[:12])]).rows[0]
    weights = row_weights(row.queries[0], store.view(0, 12)[0])
    assert (weights[:, :4] == 0).all()
    assert (weights[:, 4:] > 0).all()
    assert store.length == 12


def test_query_head_5_of_9_reads_key_head_1_of_3():
    query, key = torch.randn(1, 9, 1, 8), torch.randn(1, 3, 6, 8)
    weights = attention_weights(query, key, None, 0.5, None, None)[0, 5, 0]
    by_hand = (query[0, 5, 0] @ key[0, 1].T * 0.5).softmax(-1)
    torch.testing.assert_close(weights, by_hand)


def test_a_softcap_bends_the_scores_before_the_mask_and_the_softmax():
    query, key = 30 * torch.randn(1, 2, 1, 8), torch.randn(1, 2, 5, 8)
    mask = torch.tensor([True, True, False, True, True])[None, None, None]
    weights = attention_weights(query, key, mask, 0.5, 4.0, None)[0, 1, 0]
    scores = 4.0 * torch.tanh(query[0, 1, 0] @ key[0, 1].T * 0.5 / 4.0)
    scores[2] = -torch.inf
    torch.testing.assert_close(weights, scores.softmax(-1))
    assert weights.max() / weights[mask[0, 0, 0]].min() <= 2.72**8.01  # capped scores lie within 4 of 0


def test_a_sink_takes_its_share_and_the_row_sums_to_less_than_1():
    runner = ModelRunner(tiny_model("gpt_oss"))
    store = runner.new_store()
    row = runner.forward([Feed(store, PROMPT)]).rows[0]
    assert (row_weights(row.queries[0], store.view(0, len(PROMPT))[0]).sum(-1) < 1).all()
