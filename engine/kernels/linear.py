"""Ways to multiply a few rows by a weight matrix, and which of them this machine does fastest.

A decode step is mostly this one product, and it is bound by memory: every weight is read once. PyTorch's own
`F.linear` reaches a third of the memory's speed on many CPUs for one row, because the library behind it gives
the matrix to one thread, or to a slow routine. The kernels here are other public operations of PyTorch that
compute the same sums. Which one runs depends on the matrix and on the number of rows, never on time, so the
same step twice gives the same bits.

Letters in shapes: R rows, K width in, O width out, T blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

Kernel = Callable[[Tensor], Tensor]  # (..., K) -> (..., O)
FixedProduct = Callable[[], object]  # a product whose input and output are fixed
Build = Callable[[Tensor, Tensor | None, int], Kernel | None]  # weight (O, K), bias (O,), threads; None: cannot

ROW_STEPS = (1, 4, 8, 32)  # a kernel is measured at each of these; rows between two of them use the upper one's
ONE_ROW = frozenset({1})
FEW_ROWS = frozenset({4, 8})
ANY_ROWS = frozenset(ROW_STEPS)


@dataclass(frozen=True, slots=True)
class Method:
    """One way to compute the product, and the row counts it is tried at."""

    name: str
    rows: frozenset[int]
    build: Build


def stock(weight: Tensor, bias: Tensor | None, threads: int) -> Kernel:
    """What an untouched nn.Linear does."""
    return lambda x: F.linear(x, weight, bias)


def _block_count(weight: Tensor, threads: int) -> int:
    """How many blocks of equal height the matrix is cut into; 0 where that cannot be done."""
    heights = weight.shape[0] if weight.is_contiguous() else 1
    return next((t * threads for t in (4, 2, 1) if heights % (t * threads) == 0), 0)


def blocks(weight: Tensor, bias: Tensor | None, threads: int) -> Kernel | None:
    """One row against T blocks of the matrix at once: a batched product, which all threads share."""
    out, width = weight.shape
    count = _block_count(weight, threads)
    if count == 0:
        return None
    parts = weight.view(count, out // count, width)  # (T, O/T, K)
    shape, strides = (count, width, 1), (0, 1, width)  # the same column T times; other strides take a slow routine
    if bias is None:

        def plain(x: Tensor) -> Tensor:
            return torch.bmm(parts, x.contiguous().as_strided(shape, strides)).view(*x.shape[:-1], out)

        return plain
    shift = bias.view(count, out // count, 1)

    def shifted(x: Tensor) -> Tensor:
        return torch.baddbmm(shift, parts, x.contiguous().as_strided(shape, strides)).view(*x.shape[:-1], out)

    return shifted


def turned(weight: Tensor, bias: Tensor | None, threads: int) -> Kernel | None:
    """The weights on the left: W xᵀ instead of x Wᵀ. Other routines of the library are picked for it."""
    out, width = weight.shape

    def run(x: Tensor) -> Tensor:
        product = torch.mm(weight, x.reshape(-1, width).t()).t()  # (R, O), strided
        joined = product.contiguous() if bias is None else product + bias
        return joined.reshape(*x.shape[:-1], out)

    return run


def onednn(weight: Tensor, bias: Tensor | None, threads: int) -> Kernel | None:
    """oneDNN's product on the weights where they lie: nothing is packed, so nothing is held twice."""
    if not torch._C._has_mkldnn or not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        return None
    linear = torch.ops.mkldnn._linear_pointwise.default

    def run(x: Tensor) -> Tensor:
        product: Tensor = linear(x, weight, bias, "none", [], "")
        return product

    return run


METHODS = (  # in order of preference where two are equally fast
    Method("stock", ANY_ROWS, stock),
    Method("blocks", ONE_ROW, blocks),
    Method("turned", FEW_ROWS, turned),
    Method("onednn", ANY_ROWS, onednn),
)


def fixed(weight: Tensor, bias: Tensor | None, method: Method, threads: int, x: Tensor, y: Tensor) -> FixedProduct:
    """The product of one row from `x` (K,) into `y` (O,), always the same two tensors."""
    out, width = weight.shape
    count = _block_count(weight, threads)
    if method.build is blocks and count > 0:
        parts, rows = weight.view(count, out // count, width), y.view(count, out // count, 1)
        column = x.as_strided((count, width, 1), (0, 1, width))
        if bias is None:
            return lambda: torch.bmm(parts, column, out=rows)
        shift = bias.view(count, out // count, 1)
        return lambda: torch.baddbmm(shift, parts, column, out=rows)
    kernel = method.build(weight, bias, threads) or stock(weight, bias, threads)
    row = x[None]  # (1, K)
    return lambda: y.copy_(kernel(row)[0])


class Product:
    """One weight matrix with a kernel for every number of rows."""

    __slots__ = ("_by_rows", "_most", "width")

    def __init__(self, weight: Tensor, bias: Tensor | None, methods: dict[int, Method], threads: int) -> None:
        self.width = weight.shape[1]
        self._most = ROW_STEPS[-1]
        built = {step: method.build(weight, bias, threads) for step, method in methods.items()}
        steps = [next(s for s in ROW_STEPS if rows <= s) for rows in range(1, self._most + 1)]
        fallback = stock(weight, bias, threads)
        self._by_rows = tuple(built[step] or fallback for step in (steps[0], *steps))  # index 0 is an empty batch

    def __call__(self, x: Tensor) -> Tensor:
        kernel = self._by_rows[min(x.numel() // self.width, self._most)]
        assert kernel is not None
        return kernel(x)
