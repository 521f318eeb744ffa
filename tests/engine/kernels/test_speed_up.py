"""The fast forwards compute what the untouched model computes, hold no weight twice, and can be taken back."""

from __future__ import annotations

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel
from transformers.models.llama.modeling_llama import LlamaAttention

from engine.forward.model_runner import Feed, ModelRunner
from engine.kernels.fast_modules import FastAttention, FastNorm, same_program
from engine.kernels.install import restore
from engine.kernels.speed_up import KernelReport, speed_up
from engine.measure.clocks import unique_bytes
from tests.engine.architectures import ARCHITECTURES, tiny_model

PROMPTS = ((5, 9, 200), (7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17), (40, 50))
NEXT = (33, 44, 55)
FP32 = 1e-5  # logits here are of size 1

every_architecture = pytest.mark.parametrize("name", ARCHITECTURES)


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # these matrices are too small to share
    yield
    torch.set_num_threads(threads)


def fast(name: str, **changes: object) -> tuple[PreTrainedModel, KernelReport]:
    """A tiny model, sped up where the engine does it: in inference mode, on weights that were made outside."""
    model = tiny_model(name, **changes)
    with torch.inference_mode():
        return model, speed_up(model, threads=2)


@torch.inference_mode()
def run(model: PreTrainedModel) -> list[torch.Tensor]:
    """Logits of three prefills, of three steps alone after each, and of a batch of all three."""
    runner = ModelRunner(model)
    stores = [runner.new_store() for _ in PROMPTS]
    rows = [runner.forward([Feed(s, p)], logit_rows="all").rows[0] for s, p in zip(stores, PROMPTS, strict=True)]
    for token_id in NEXT:
        rows += [runner.forward([Feed(store, (token_id,))]).rows[0] for store in stores]
    rows += runner.forward([Feed(store, (66,)) for store in stores]).rows
    return [row.logits for row in rows]


@every_architecture
def test_logits_are_those_of_the_untouched_model(name):
    model, report = fast(name)
    assert report.applied, report.reason
    for ours, theirs in zip(run(model), run(tiny_model(name)), strict=True):
        torch.testing.assert_close(ours, theirs, atol=FP32, rtol=0)


@every_architecture
def test_names_values_and_bytes_of_the_weights_stay(name):
    model, _ = fast(name)
    stock = tiny_model(name)
    assert unique_bytes(list(model.parameters())) == unique_bytes(list(stock.parameters()))
    assert list(model.state_dict()) == list(stock.state_dict())
    for key, value in stock.state_dict().items():
        assert torch.equal(model.state_dict()[key], value), key


@every_architecture
def test_taken_back_it_computes_the_same_bits_as_an_untouched_model(name):
    model, report = fast(name)
    restore(model)
    stock = tiny_model(name)
    assert report.replaced
    assert [type(m) for m in model.modules()] == [type(m) for m in stock.modules()]
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(run(model), run(stock), strict=True))


@pytest.mark.parametrize("name", ["llama", "qwen3", "gemma2", "deepseek_v3"])
def test_a_step_after_a_rewind_has_the_same_bits(name):
    model, _ = fast(name)
    runner = ModelRunner(model)
    store = runner.new_store()
    runner.forward([Feed(store, PROMPTS[1])])
    first = runner.forward([Feed(store, (33,))]).rows[0]
    runner.forward([Feed(store, (44,))])
    store.truncate(len(PROMPTS[1]))
    again = runner.forward([Feed(store, (33,))]).rows[0]
    assert torch.equal(first.logits, again.logits)
    assert all(torch.equal(first.queries[i].query, again.queries[i].query) for i in first.queries)


@torch.no_grad()
def test_what_a_step_returned_does_not_change_when_the_next_one_runs():
    model, _ = fast("llama")
    runner = ModelRunner(model)
    store = runner.new_store()
    runner.forward([Feed(store, PROMPTS[0])])
    first = runner.forward([Feed(store, (33,))]).rows[0]
    kept = [first.logits.clone(), *(q.query.clone() for q in first.queries.values())]
    runner.forward([Feed(store, (44,))])
    after = [first.logits, *(q.query for q in first.queries.values())]
    assert all(torch.equal(a, b) for a, b in zip(kept, after, strict=True))


def test_what_a_layer_returned_does_not_change_when_later_layers_run():
    model, _ = fast("llama")
    outputs: list[tuple[torch.Tensor, torch.Tensor]] = []
    for layer in model.model.layers:
        layer.register_forward_hook(lambda module, args, output: outputs.append((output, output.clone())))
    run(model)
    assert all(torch.equal(now, then) for now, then in outputs)


@torch.no_grad()
def test_whoever_asks_for_hidden_states_and_attention_weights_gets_those_of_the_untouched_model():
    steps = []
    for model in (fast("llama")[0], tiny_model("llama")):
        cache = model(input_ids=torch.tensor([PROMPTS[0]]), use_cache=True).cache
        step = torch.tensor([[33]])
        steps.append(model(input_ids=step, cache=cache, output_hidden_states=True, output_attentions=True))
    ours, theirs = ([*out.hidden_states, *out.attentions] for out in steps)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, atol=FP32, rtol=0)


@pytest.mark.parametrize(
    ("name", "bundles", "row_layers"),
    [
        ("llama", 4, 2),
        ("qwen2", 4, 2),
        ("mistral", 4, 2),
        ("gemma", 4, 0),  # its norm adds one to the weight: another program
        ("qwen3", 4, 0),  # norms inside attention
        ("granite", 4, 0),  # its layer scales the residual
        ("smollm3", 2, 0),  # some of its layers do not rotate
        ("phi3", 0, 0),  # comes bundled
        ("gpt2", 0, 0),
    ],
)
def test_only_programs_that_are_known_word_for_word_are_replaced(name, bundles, row_layers):
    _, report = fast(name)
    assert (report.bundles, report.row_layers) == (bundles, row_layers)


def test_attention_that_rotates_in_another_way_is_not_taken_for_llamas():
    sizes = ARCHITECTURES["llama"] | {"head_dim": 16}
    glm = AutoModelForCausalLM.from_config(AutoConfig.for_model("glm", **sizes)).model.layers[0].self_attn
    assert same_program(type(glm).forward, LlamaAttention.forward)
    assert not FastAttention.fits(glm)


def test_bundled_projections_share_one_storage():
    model, _ = fast("llama")
    attention = model.model.layers[0].self_attn
    storages = {p.weight.untyped_storage().data_ptr() for p in (attention.q_proj, attention.k_proj, attention.v_proj)}
    assert len(storages) == 1


def test_a_tied_head_stays_tied():
    model, report = fast("llama", tie_word_embeddings=True)
    assert report.applied
    assert model.lm_head.weight is model.model.embed_tokens.weight


def test_a_model_that_would_compute_something_else_is_put_back(monkeypatch):
    monkeypatch.setattr(FastNorm, "forward", lambda self, hidden_states: hidden_states)
    model, report = fast("llama")
    assert not report.applied
    assert "logits differed" in report.reason
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(run(model), run(tiny_model("llama")), strict=True))


def test_nan_is_never_taken_for_agreement(monkeypatch):
    monkeypatch.setattr(FastNorm, "forward", lambda self, hidden_states: hidden_states * float("nan"))
    _, report = fast("llama")
    assert not report.applied


def test_sixteen_bit_weights_are_left_alone():
    model = tiny_model("llama").to(torch.bfloat16)
    report = speed_up(model, threads=2)
    assert (report.applied, report.reason) == (False, "only for float32 on CPU")


def test_a_second_call_changes_nothing():
    model, _ = fast("llama")
    classes = [type(module) for module in model.modules()]
    assert not speed_up(model, threads=2).applied
    assert [type(module) for module in model.modules()] == classes


def test_a_program_with_another_constant_is_another_program():
    def first(x: float) -> float:
        """A docstring."""
        return x * 2.0 + getattr(x, "real", 0.0)

    def same(x: float) -> float:
        """Another docstring."""
        return x * 2.0 + getattr(x, "real", 0.0)

    def factor(x: float) -> float:
        """A docstring."""
        return x * 3.0 + getattr(x, "real", 0.0)

    def attribute(x: float) -> float:
        """A docstring."""
        return x * 2.0 + getattr(x, "imag", 0.0)

    assert same_program(first, same)
    assert not same_program(first, factor)
    assert not same_program(first, attribute)
