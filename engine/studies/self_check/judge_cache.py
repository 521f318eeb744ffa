"""What the cache holds, against the stock model's own cache after the same tokens: numbers, norms and bytes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from transformers import DynamicCache

from engine.forward.kv_store import KVStore
from engine.records import StepRecord
from engine.studies.self_check.bounds import Bounds
from engine.studies.self_check.findings import Distance, Tally
from engine.studies.self_check.stock_run import Pause


class StockCache:
    """The stock model's keys and values after the same tokens.

    layers  per layer keys and values (G, T, D)
    norms   per layer the lengths of its keys and of its values (G, T), float64
    """

    def __init__(self, cache: DynamicCache) -> None:
        self.layers = _layers(cache)
        self.norms = [tuple(_lengths(side) for side in layer) for layer in self.layers]

    @staticmethod
    def bytes_of(cache: DynamicCache, num_tokens: int) -> int:
        """Bytes of some tokens in transformers' cache, tensor by tensor."""
        sides = [side for layer in _layers(cache) for side in layer]
        return sum(side.shape[0] * num_tokens * side.shape[2] * side.element_size() for side in sides)


def _layers(cache: DynamicCache) -> list[tuple[Tensor, Tensor]]:
    """Keys and values (G, T, D) of each layer of a cache that was run."""
    return [(_side(layer, "keys"), _side(layer, "values")) for layer in cache.layers]


def _side(layer: object, name: str) -> Tensor:
    side = getattr(layer, name)
    assert isinstance(side, Tensor), "every layer of a cache that was run holds keys and values"
    return side[0]


def _lengths(side: Tensor) -> NDArray[np.float64]:
    numbers = side.double().cpu().numpy()
    lengths: NDArray[np.float64] = np.sqrt((numbers * numbers).sum(-1))
    return lengths


def judge_tensors(
    distance: Distance, store: KVStore, stock: StockCache, num_tokens: int, bounds: Bounds, pause: Pause
) -> None:
    """Every key and value that is cached now, as a share of the largest of its layer; a pause before each."""
    for layer, sides in enumerate(stock.layers):
        pause()
        for what, ours, theirs in zip(("keys", "values"), store.view(layer, num_tokens), sides, strict=True):
            scale = float(theirs.abs().max().clamp(min=1e-30))
            apart = float((ours.double() - theirs.double()).abs().max()) / scale  # NaN stays NaN
            distance.add(f"{what} of layer {layer}", np.array([apart]), np.zeros(1), bounds.relative)
            distance.numbers += theirs.numel() - 1


def judge_norms(
    distance: Distance, record: StepRecord, name: str, start: int, end: int, stock: StockCache, bounds: Bounds
) -> None:
    """The lengths of the keys and values that a step added, as a share of the longest of the layer."""
    expected = np.stack([np.stack([layer[side][:, start:end] for layer in stock.norms]) for side in (0, 1)])
    longest = np.stack([np.array([layer[side].max(initial=1e-30) for layer in stock.norms]) for side in (0, 1)])
    scale = longest[:, :, None, None]
    if record.kv_norms.shape != expected.shape:
        distance.add(f"{name} norms", record.kv_norms, expected, bounds.relative)
        return
    distance.add(f"{name} norms", record.kv_norms / scale, expected / scale, bounds.relative)


def judge_bytes(tally: Tally, record: StepRecord, name: str, expected: int) -> None:
    """Every number of bytes of the cache that a record shows."""
    tally.same(f"{name} bytes cached", record.kv_bytes, expected)
    tally.same(f"{name} bytes of live tensors", record.memory.kv_live_bytes, expected)
    tally.same(f"{name} bytes by formula", record.memory.kv_formula_bytes, expected)


def weight_bytes(tensors: list[Tensor]) -> int:
    """Bytes of all weights, each counted once however many names it has."""
    each = {t.data_ptr(): t.nelement() * t.element_size() for t in tensors}
    return sum(each.values())
