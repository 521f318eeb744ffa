"""A step's way through the blocks, held against hooks on a stock model and against its own hidden states."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from engine.block import BlockNorms
from engine.config import EngineConfig, SamplingParams
from engine.errors import UnknownStep
from engine.llm_engine import LLMEngine
from tests.engine.architectures import ARCHITECTURES, CHUNKED, SMALL, loaded, tiny_engine, tiny_model

PROMPT = tuple(range(10, 30))
WARM = SamplingParams(temperature=1.0)

# Where each architecture's own modules give what a block adds: attention, then the MLP; and whether both read the same.
BRANCHES: dict[str, tuple[str, str, str, bool]] = {
    "llama": ("model.layers", "self_attn", "mlp", False),
    "qwen3": ("model.layers", "self_attn", "mlp", False),
    "mixtral": ("model.layers", "self_attn", "mlp", False),
    "gemma2": ("model.layers", "post_attention_layernorm", "post_feedforward_layernorm", False),
    "olmo2": ("model.layers", "post_attention_layernorm", "post_feedforward_layernorm", False),
    "gpt2": ("transformer.h", "attn", "mlp", False),
    "opt": ("model.decoder.layers", "self_attn", "fc2", False),
    "gpt_oss": ("model.layers", "self_attn", "mlp", False),
    "deepseek_v3": ("model.layers", "self_attn", "mlp", False),
    "gpt_neox": ("gpt_neox.layers", "attention", "mlp", True),
    "gptj": ("transformer.h", "attn", "mlp", True),
    "phi": ("model.layers", "self_attn", "mlp", True),
    "cohere": ("model.layers", "self_attn", "mlp", True),
}


@pytest.fixture(params=ARCHITECTURES)
def architecture(request):
    made = tiny_engine(request.param)
    yield request.param, made
    made.close()


def run_of(engine, steps=2):
    session = engine.create_session(sampling=WARM, seed=3)
    session.prefill(PROMPT).result(30)
    for _ in range(steps):
        session.step().result(30)
    return session


def last_row(value: Any) -> Tensor:
    tensor = value[0] if isinstance(value, tuple) else value
    return tensor.reshape(-1, tensor.shape[-1])[-1]


def stock_outputs(model: nn.Module, ids: tuple[int, ...], modules: dict[str, nn.Module]) -> dict[str, Tensor]:
    """Last rows of what modules give in one eager forward pass of transformers over all of `ids`."""
    given: dict[str, Tensor] = {}
    hooks = [
        m.register_forward_hook(lambda _, __, out, n=n: given.update({n: last_row(out)})) for n, m in modules.items()
    ]
    with torch.inference_mode():
        output = model(torch.tensor([ids]), output_hidden_states=True, use_cache=False)
    for hook in hooks:
        hook.remove()
    return (
        given
        | {f"hidden {i}": last_row(h) for i, h in enumerate(output.hidden_states)}
        | {"logits": output.logits[0, -1]}
    )


@pytest.mark.parametrize("name", BRANCHES)
def test_what_each_block_adds_is_what_the_stock_model_adds(name):
    path, attention, mlp, is_parallel = BRANCHES[name]
    engine, stock = tiny_engine(name), tiny_model(name)
    try:
        session = run_of(engine)
        layers = stock.get_submodule(path)
        watched = {
            f"{part} {i}": layer.get_submodule(part) for i, layer in enumerate(layers) for part in (attention, mlp)
        }
        for step in range(3):  # the prefill's last row, and two decode steps
            ids = session.recipe.token_ids[: len(PROMPT) + step]
            stock_gave = stock_outputs(stock, ids, watched | {f"layer {i}": layer for i, layer in enumerate(layers)})
            length = {key: float(row.norm()) for key, row in stock_gave.items()}
            found = session.blocks(step).result(30)
            assert found.closed == "" and len(found.layers) == len(layers)
            for i, block in enumerate(found.layers):
                assert block.entered == pytest.approx(length[f"hidden {i}"], rel=1e-4)
                assert block.attention_added == pytest.approx(length[f"{attention} {i}"], rel=1e-4)
                assert block.mlp_added == pytest.approx(length[f"{mlp} {i}"], rel=1e-4)
                assert block.left == pytest.approx(length[f"layer {i}"], rel=1e-4)
                assert (block.middle is None) == is_parallel
                if not is_parallel:
                    middle = stock_gave[f"hidden {i}"] + stock_gave[f"{attention} {i}"]
                    assert block.middle == pytest.approx(float(middle.norm()), rel=1e-4)
            assert found.final_norm == pytest.approx(length[f"hidden {len(layers)}"], rel=1e-4)
            assert found.logits == pytest.approx(length["logits"], rel=1e-4)
            assert (found.hidden, found.vocabulary) == (64, 300)
    finally:
        engine.close()


@pytest.mark.parametrize("fast", [False, True])
def test_every_box_of_a_llama_block_has_the_stock_models_number(fast):
    engine, stock = tiny_engine(fast_kernels=fast), tiny_model("llama")
    try:
        session = run_of(engine)
        layer = stock.get_submodule("model.layers.1")
        parts = ("input_layernorm", "self_attn.v_proj", "self_attn.q_proj", "self_attn.k_proj", "self_attn",
                 "post_attention_layernorm", "mlp", "mlp.gate_proj", "mlp.up_proj")  # fmt: skip
        read: list[Tensor] = []
        for part in ("self_attn.o_proj", "mlp.down_proj"):
            layer.get_submodule(part).register_forward_pre_hook(lambda _, args: read.append(args[0][0, -1]))
        gave = stock_outputs(
            stock, session.recipe.token_ids[: len(PROMPT) + 1], {p: layer.get_submodule(p) for p in parts}
        )
        block = session.blocks(1).result(30).layers[1]
        shown = (block.first_norm, block.value, block.query, block.key, block.projected, block.second_norm, block.mlp)
        shown += tuple(matrix.norm for matrix in block.matrices[:2])
        wanted = [gave[part].norm() for part in parts]
        assert np.allclose(shown, wanted, rtol=1e-4)  # a rotation leaves the norms of q and k as they are
        assert np.allclose((block.attended, block.inner), [row.norm() for row in read], rtol=1e-4)
        assert block.attention_norm is None and block.mlp_norm is None, "a llama has no norm after its branches"
        assert (block.heads.queries, block.heads.keys, block.heads.width, block.heads.value_width) == (4, 2, 16, 16)
        assert [(m.name, m.inputs, m.outputs) for m in block.matrices] == [
            ("gate_proj", 64, 96), ("up_proj", 64, 96), ("down_proj", 96, 64)
        ]  # fmt: skip
        assert block.is_rotated and not block.has_experts and block.keys_read == len(PROMPT) + 1
    finally:
        engine.close()


def test_the_blocks_of_every_architecture_open(architecture):
    name, engine = architecture
    found = run_of(engine, 1).blocks(1).result(30)
    assert found.closed == "", name
    assert len(found.layers) == engine.info.num_layers
    experts = engine.info.shape.experts
    assert found.layers[-1].has_experts == (experts is not None and experts.layers > 0)
    assert found.layers[0].is_rotated == (name not in ("gpt2", "opt"))
    for block, after in zip(found.layers, found.layers[1:], strict=False):
        assert block.left == pytest.approx(after.entered, rel=1e-6)
    numbers = [getattr(found.layers[0], f.name) for f in fields(BlockNorms)]
    assert all(number >= 0 for number in numbers if isinstance(number, float))


@pytest.mark.parametrize("name", ["llama", "gemma2", "phi"])
def test_in_bfloat16_the_same_blocks_open(name):
    """The sum of the parts is rounded once more than the parts: it is found all the same."""
    plain, short = (
        tiny_engine(name),
        LLMEngine(loaded(tiny_model(name).to(torch.bfloat16)), EngineConfig(fast_kernels=False)),
    )
    try:
        exact, rounded = run_of(plain, 0).blocks(0).result(30), run_of(short, 0).blocks(0).result(30)
        assert rounded.closed == ""
        for one, other in zip(exact.layers, rounded.layers, strict=True):
            assert (one.middle is None) == (other.middle is None)
            assert other.attention_added == pytest.approx(one.attention_added, rel=0.03)
            assert other.mlp_added == pytest.approx(one.mlp_added, rel=0.03)
    finally:
        plain.close()
        short.close()


HYBRID = {"sliding_window": 8, "layer_types": ["sliding_attention", "full_attention"] * 2}
WITHOUT_ROPE: dict[str, dict[str, Any]] = {  # tiny models whose second and fourth layers have no rotary embedding
    "cohere2": SMALL | HYBRID | {"num_hidden_layers": 4},
    "exaone4": SMALL | HYBRID | {"num_hidden_layers": 4, "sliding_window_pattern": 2},
    "smollm3": SMALL | {"num_hidden_layers": 4, "no_rope_layers": [1, 0, 1, 0]},
    "llama4_text": CHUNKED | {"no_rope_layers": [1, 0, 1, 0]},
}  # fmt: skip


def layers_that_feel_positions(model: nn.Module) -> list[bool]:
    """Of a stock model: whose attention gives something else when RoPE's angles are those of positions twice as far."""
    twice = 2 * torch.arange(len(PROMPT))[None]
    found = []
    for layer in model.get_submodule("model.layers"):
        gave: list[Tensor] = []

        def again(module: nn.Module, args: Any, kwargs: Any, output: Any, gave: list[Tensor] = gave) -> None:
            if gave:
                return
            gave.append(output[0])
            turned = model.get_submodule("model.rotary_emb")(args[0] if args else kwargs["hidden_states"], twice)
            gave.append(module(*args, **kwargs | {"position_embeddings": turned})[0])

        hook = layer.get_submodule("self_attn").register_forward_hook(again, with_kwargs=True)
        with torch.inference_mode():
            model(torch.tensor([PROMPT]), use_cache=False)
        hook.remove()
        found.append(not torch.allclose(*gave, atol=1e-6))
    return found


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize(
    ("name", "dtype"),
    [(name, torch.float32) for name in WITHOUT_ROPE] + [("cohere2", torch.bfloat16), ("exaone4", torch.bfloat16)],
)
def test_rope_is_shown_in_the_layers_whose_attention_feels_positions(name, dtype, fast):
    stock = tiny_model(name, **WITHOUT_ROPE[name])
    wanted = layers_that_feel_positions(stock)
    assert wanted == [True, False, True, False]
    engine = LLMEngine(loaded(stock.to(dtype)), EngineConfig(fast_kernels=fast))
    try:
        session = run_of(engine)
        for step in range(3):
            assert [block.is_rotated for block in session.blocks(step).result(30).layers] == wanted
    finally:
        engine.close()


def test_at_position_1_a_rotation_is_seen_and_at_position_0_there_is_none_to_see():
    engine = LLMEngine(loaded(tiny_model("cohere2", **WITHOUT_ROPE["cohere2"])), EngineConfig(fast_kernels=False))
    try:
        session = engine.create_session(sampling=WARM, seed=3)
        session.prefill(PROMPT[:1]).result(30)
        session.step().result(30)
        shown = [[block.is_rotated for block in session.blocks(step).result(30).layers] for step in range(2)]
        assert shown == [[True] * 4, [True, False] * 2]
    finally:
        engine.close()


def test_a_sliding_layer_reads_its_window_only():
    engine = tiny_engine("mistral")  # a window of 8
    try:
        assert [block.keys_read for block in run_of(engine, 1).blocks(1).result(30).layers] == [8, 8]
    finally:
        engine.close()


def test_a_block_that_is_no_sum_is_said_to_be_none():
    """OPT's first kind norms after each sum, so what comes out of a block is no sum of its parts."""
    engine = LLMEngine(loaded(tiny_model("opt", do_layer_norm_before=False)), EngineConfig(fast_kernels=False))
    try:
        found = run_of(engine, 1).blocks(1).result(30)
        assert "is not what comes out" in found.closed
        assert all(block.mlp_added is None and block.attention_added is None for block in found.layers)
        assert all(block.left > 0 and block.query > 0 for block in found.layers)
    finally:
        engine.close()


@pytest.mark.parametrize("fast", [False, True])
def test_looking_changes_no_bit_and_leaves_no_hook(fast):
    engine = tiny_engine("llama", fast_kernels=fast)
    try:
        looked, plain = run_of(engine, 0), run_of(engine, 0)
        for step in range(4):
            looked.blocks(step).result(30)
            looked.step().result(30)
            plain.step().result(30)
        assert looked.recipe.token_ids == plain.recipe.token_ids
        for one, other in zip(looked.records, plain.records, strict=True):
            assert np.array_equal(one.candidates.logits, other.candidates.logits)
            assert one.kv_bytes == other.kv_bytes
        modules = list(engine.stepper.runner.model.modules())
        assert not any(module._forward_hooks or module._forward_pre_hooks for module in modules)
    finally:
        engine.close()


def test_a_step_that_is_not_there_is_refused():
    engine = tiny_engine()
    try:
        with pytest.raises(UnknownStep):
            run_of(engine, 0).blocks(7).result(30)
    finally:
        engine.close()


def test_nobody_is_let_in_while_hooks_are_in_place():
    """Whoever stepped there would go module by module, and its numbers would be rounded otherwise."""
    engine = tiny_engine()
    try:
        session, runner = run_of(engine, 1), engine.stepper.runner
        let_in: list[int] = []
        before, runner.between_layers = runner.between_layers, lambda: let_in.append(1)
        session.blocks(1).result(30)
        runner.between_layers = before
        assert not let_in
    finally:
        engine.close()
