"""Every kernel computes x Wᵀ + b, and the fastest measured one is chosen."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from engine.kernels.choice import KernelChoice, choose_kernels
from engine.kernels.linear import METHODS, ROW_STEPS, Build, Method, Product, fixed, stock

BY_NAME = {method.name: method for method in METHODS}


def matrix(out: int, width: int) -> torch.Tensor:
    return torch.randn(out, width, generator=torch.Generator().manual_seed(out * width))


@pytest.mark.parametrize("out", [1, 6, 7, 64, 96])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("name", BY_NAME)
def test_every_kernel_computes_the_product_of_a_linear_module(name, bias, out):
    weight, method = matrix(out, 48), BY_NAME[name]
    shift = matrix(out, 1)[:, 0].contiguous() if bias else None
    kernel = method.build(weight, shift, 2)
    if kernel is None:
        assert name == "blocks" and out % 2 == 1  # an odd matrix cannot be cut in halves
        return
    for rows in sorted(method.rows):
        for x in (matrix(rows, 48), matrix(rows, 48)[None]):
            torch.testing.assert_close(kernel(x), F.linear(x, weight, shift), atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", BY_NAME)
@pytest.mark.parametrize("bias", [False, True])
def test_a_fixed_product_writes_the_same_into_its_vector(name, bias):
    weight, shift = matrix(64, 48), matrix(64, 1)[:, 0].contiguous() if bias else None
    x, y = torch.zeros(48), torch.zeros(64)
    run = fixed(weight, shift, BY_NAME[name], 2, x, y)
    for seed in (1, 2):
        x.copy_(torch.randn(48, generator=torch.Generator().manual_seed(seed)))
        run()
        torch.testing.assert_close(y, F.linear(x, weight, shift), atol=1e-5, rtol=0)


@pytest.mark.parametrize("rows", [0, 1, 2, 4, 5, 8, 9, 31, 32, 33, 100])
def test_a_product_uses_the_kernel_of_its_number_of_rows(rows):
    used: list[int] = []

    def tracing(step: int) -> Method:
        def build(weight, bias, threads):
            return lambda x: used.append(step) or F.linear(x, weight, bias)

        return Method(str(step), frozenset(ROW_STEPS), build)

    product = Product(matrix(6, 4), None, {step: tracing(step) for step in ROW_STEPS}, 2)
    assert product(torch.zeros(1, rows, 4)).shape == (1, rows, 6)
    assert used == [next((step for step in ROW_STEPS if rows <= step), ROW_STEPS[-1])]


def repeated(times: int) -> Build:
    """A kernel that does the work `times` over."""

    def build(weight, bias, threads):
        kernel = stock(weight, bias, threads)
        return lambda x: [kernel(x) for _ in range(times)][-1]

    return build


def wrong(weight, bias, threads):
    return stock(weight * 1.001, bias, threads)


def test_the_fastest_right_kernel_is_chosen(monkeypatch):
    every = frozenset(ROW_STEPS)
    quick = Method("quick", every, repeated(5))
    methods = (Method("slow", every, repeated(100)), Method("wrong", every, wrong), quick)
    monkeypatch.setattr("engine.kernels.choice.METHODS", methods)
    chosen, table = choose_kernels({(64, 48): [matrix(64, 48)] * 3}, threads=2)
    assert chosen == {(64, 48): dict.fromkeys(ROW_STEPS, quick)}
    assert [(c.shape, c.count, c.rows, c.kernel) for c in table] == [((64, 48), 3, rows, "quick") for rows in ROW_STEPS]
    assert all(isinstance(c, KernelChoice) and c.gb_per_s > c.stock_gb_per_s > 0 for c in table)
