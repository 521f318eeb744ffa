"""The models that are compared: ours with its fast kernels, and two of stock transformers over the same weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, cast

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from benchmarks.timing import Variant
from engine.forward.kv_store import KVStore
from engine.forward.model_runner import Feed, ModelRunner
from engine.kernels.choice import Shape
from engine.kernels.joined_weights import find_matrices
from engine.llm_engine import LLMEngine
from engine.models.stock import share_weights
from engine.serving.requests import at_once

T = TypeVar("T")

TOKEN = 335  # any id does: the work of a step does not depend on it


@dataclass(frozen=True, slots=True)
class Bench:
    """Everything the rows are measured on. All models read the same weights.

    runner        ours, keeping each step's queries; runner_off does not
    stock         transformers with its own fused attention; eager stores weights and hidden states when asked
    weight_bytes  read once per step
    """

    engine: LLMEngine
    runner: ModelRunner
    runner_off: ModelRunner
    stock: PreTrainedModel
    eager: PreTrainedModel
    weight_bytes: int


def prepare(engine: LLMEngine) -> Bench:
    """What is compared, over the engine's own weights. Call it, and what uses it, `on` the engine's thread."""
    sdpa = share_weights(engine.stock)
    sdpa.set_attn_implementation("sdpa")
    runner, off = engine.stepper.runner, ModelRunner(engine.model, keep_queries=False)
    return Bench(engine, runner, off, sdpa, engine.stock, engine.info.weight_bytes)


def on(engine: LLMEngine, work: Callable[[], T]) -> T:
    """What `work` returns on the engine's thread, the only one that may let PyTorch compute in parallel."""
    return cast("T", engine.submit("benchmark", at_once(work)).result())


def matrices_by_shape(model: PreTrainedModel) -> dict[Shape, list[Tensor]]:
    """The matrices of a stock model, joined where they are, by their shapes."""
    groups: dict[Shape, list[Tensor]] = {}
    for matrix in find_matrices(model):
        groups.setdefault(matrix.shape, []).append(matrix.weight)
    return groups


def filled(runner: ModelRunner, length: int) -> KVStore:
    """A cache that holds `length` tokens."""
    store = runner.new_store()
    ids = tuple(1000 + i % 5000 for i in range(length))
    for start in range(0, length, 256):
        runner.forward([Feed(store, ids[start : start + 256])], logit_rows="none")
    return store


def our_step(runner: ModelRunner, stores: list[KVStore]) -> Variant:
    """One step of all `stores` in one forward; the token is taken back afterwards."""
    lengths = [store.length for store in stores]

    def reset() -> None:
        for store, length in zip(stores, lengths, strict=True):
            store.truncate(length)

    return Variant(lambda: runner.forward([Feed(store, (TOKEN,)) for store in stores]), reset)


def stock_step(model: PreTrainedModel, store: KVStore, *, times: int = 1, outputs: bool = False) -> Variant:
    """One step of transformers over the same cached tokens, `times` sessions one after another."""
    ids = torch.tensor([[TOKEN]])
    caches: list[DynamicCache] = []

    def reset() -> None:
        caches[:] = [_dynamic(store) for _ in range(times)]

    def run() -> None:
        for cache in caches:
            model(input_ids=ids, cache=cache, use_cache=True, output_attentions=outputs, output_hidden_states=outputs)

    return Variant(run, reset)


def _dynamic(store: KVStore) -> DynamicCache:
    """transformers' own cache with the contents of `store`."""
    cache = DynamicCache()
    for layer in range(store.num_layers):
        keys, values = store.view(layer, store.length)
        cache.update(keys.unsqueeze(0).clone(), values.unsqueeze(0).clone(), layer)
    return cache


def products(bench: Bench, rows: int) -> Variant:
    """The linear layers alone, in order, with the kernels that were chosen for `rows` rows."""
    held = [
        product
        for module in bench.runner.model.modules()
        for name in ("product", "qkv", "gate_up")
        if (product := vars(module).get(name)) is not None
    ]
    inputs: dict[int, Tensor] = {product.width: torch.randn(1, rows, product.width) for product in held}
    return Variant(lambda: [product(inputs[product.width]) for product in held])
