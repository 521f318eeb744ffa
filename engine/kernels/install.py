"""Put the fast forwards in place: every matrix gets its products, every module that qualifies its new class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from engine.kernels.choice import Shape
from engine.kernels.fast_modules import FastAttention, FastLayer, FastLinear, FastMLP, FastNorm, abandon, adopt
from engine.kernels.joined_weights import Matrix
from engine.kernels.layer_inputs import SharedInputs
from engine.kernels.linear import FixedProduct, Method, Product, fixed
from engine.kernels.row_path import WIDEST, RowLayer, RowNorm, RowSizes, RowVectors

MIXINS: Mapping[str, type[nn.Module]] = {"product": FastLinear, "qkv": FastAttention, "gate_up": FastMLP}


def refit(model: nn.Module, matrices: Sequence[Matrix], chosen: Mapping[Shape, dict[int, Method]], threads: int) -> int:
    """Give `model` its fast forwards. Returns how many decoder layers have a shorter way for one row."""
    shared = SharedInputs()
    for matrix in matrices:
        if matrix.attribute == "qkv":
            FastAttention.prepare(matrix.owner, shared)
        setattr(matrix.owner, matrix.attribute, Product(matrix.weight, matrix.bias, chosen[matrix.shape], threads))
        adopt(matrix.owner, MIXINS[matrix.attribute])
    for module in model.modules():
        if FastNorm.fits(module):
            FastNorm.prepare(module)
            adopt(module, FastNorm)
        elif FastLayer.fits(module):
            adopt(module, FastLayer)
    rows = _RowBuilder(matrices, chosen, threads)
    return sum(rows.build(module) for module in model.modules() if isinstance(module, FastLayer))


def restore(model: nn.Module) -> None:
    """Give every module its own forward back. Bundled weights stay bundled; their values never changed."""
    for module in model.modules():
        if isinstance(module, FastLinear | FastNorm | FastMLP | FastAttention | FastLayer):
            abandon(module)


def refitted(model: nn.Module) -> tuple[tuple[str, int], ...]:
    """(class name, how many) of the modules that have a fast forward."""
    fast = FastLinear | FastNorm | FastMLP | FastAttention | FastLayer
    names = Counter(type(module).__mro__[2].__name__ for module in model.modules() if isinstance(module, fast))
    return tuple(sorted(names.items()))


class _RowBuilder:
    """Makes the shorter way of each layer; layers of equal sizes share their vectors."""

    def __init__(self, matrices: Sequence[Matrix], chosen: Mapping[Shape, dict[int, Method]], threads: int) -> None:
        self._matrices = {id(matrix.owner): matrix for matrix in matrices}
        self._chosen = chosen
        self._threads = threads
        self._vectors: dict[RowSizes, RowVectors] = {}

    def build(self, layer: Any) -> bool:
        """Whether all of `layer` could be done in one row's way; if so, it is in place."""
        norms = (layer.input_layernorm, layer.post_attention_layernorm)
        if not isinstance(layer.self_attn, FastAttention) or layer.self_attn.head_norms:
            return False
        if not isinstance(layer.mlp, FastMLP) or not all(isinstance(norm, FastNorm) for norm in norms):
            return False
        if not all(isinstance(last, FastLinear) for last in (layer.self_attn.o_proj, layer.mlp.down_proj)):
            return False
        sizes = _sizes(layer)
        if sizes.hidden > WIDEST or sizes.head_dim % 2:
            return False
        vectors = self._vectors.setdefault(sizes, RowVectors(sizes))
        first, second = (RowNorm(norm.scale.numpy(), norm.variance_epsilon, vectors.normed_array) for norm in norms)
        layer.row = RowLayer(
            vectors,
            layer.self_attn,
            layer.mlp.act_fn,
            first,
            second,
            qkv=self._run(layer.self_attn, vectors.normed, vectors.mixed),
            out=self._run(layer.self_attn.o_proj, vectors.attended, vectors.added),
            gate_up=self._run(layer.mlp, vectors.normed, vectors.gate_up),
            down=self._run(layer.mlp.down_proj, vectors.gated, vectors.added),
        )
        return True

    def _run(self, owner: nn.Module, x: Tensor, y: Tensor) -> FixedProduct:
        matrix = self._matrices[id(owner)]
        return fixed(matrix.weight, matrix.bias, self._chosen[matrix.shape][1], self._threads, x, y)


def _sizes(layer: Any) -> RowSizes:
    heads, kv_heads = layer.self_attn.heads
    hidden = layer.self_attn.o_proj.out_features
    return RowSizes(hidden, heads, kv_heads, layer.self_attn.head_dim, layer.mlp.down_proj.in_features)
