"""The models that are compared: ours with its fast kernels, and two of stock transformers over the same weights."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from benchmarks.timing import Variant
from engine.config import EngineConfig
from engine.forward.kv_store import KVStore
from engine.forward.model_runner import Feed, ModelRunner
from engine.kernels.speed_up import KernelReport, speed_up
from engine.models.loader import LoadedModel, load_model
from engine.models.stock import follow_weights, share_weights

TOKEN = 335  # any id does: the work of a step does not depend on it


@dataclass(frozen=True, slots=True)
class Bench:
    """Everything the rows are measured on. All models read the same weights.

    runner        ours, keeping each step's queries; runner_off does not
    stock         transformers with its own fused attention; eager stores weights and hidden states when asked
    weight_bytes  read once per step
    """

    loaded: LoadedModel
    kernels: KernelReport
    runner: ModelRunner
    runner_off: ModelRunner
    stock: PreTrainedModel
    eager: PreTrainedModel
    weight_bytes: int


def prepare(config: EngineConfig) -> Bench:
    """Load the model and its stock twins. Call it, and what uses it, within torch.inference_mode."""
    loaded = load_model(config)
    model = loaded.model
    twins = [share_weights(model) for _ in range(2)]
    kernels = speed_up(model, threads=torch.get_num_threads())
    for twin in twins:
        follow_weights(twin, model)
    twins[0].set_attn_implementation("sdpa")
    runner, runner_off = ModelRunner(model), ModelRunner(model, keep_queries=False)
    return Bench(loaded, kernels, runner, runner_off, twins[0], twins[1], loaded.info.weight_bytes)


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
