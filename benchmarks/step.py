"""One session's step: against the memory's limit, against transformers, and against itself without capture."""

from __future__ import annotations

import torch

from benchmarks.results import Row, ratio
from benchmarks.setup import Bench, filled, our_step, stock_step
from benchmarks.timing import Variant, interleave
from engine.forward.kv_store import KVStore
from engine.kernels.linear import blocks, stock

MATRICES, HEIGHT, WIDTH = 8, 8192, 1024  # 256 MB in turn: far more than a processor caches
SHORT, LONG = 32, 2048  # tokens of context


def step_rows(bench: Bench, rounds: int) -> list[Row]:
    """Rows at both lengths of context."""
    short, long = filled(bench.runner, SHORT), filled(bench.runner, LONG)
    return [
        *_against_memory(bench, short.fork(SHORT), rounds),
        *_against_stock(bench, short.fork(SHORT), rounds, 1.5),
        _capture(bench, short.fork(SHORT), 4 * rounds),
        *_against_stock(bench, long.fork(LONG), max(5, rounds // 2), 2.0),
        _capture(bench, long.fork(LONG), 4 * rounds),
    ]


def _against_memory(bench: Bench, store: KVStore, rounds: int) -> list[Row]:
    reads, tokens = _reads(), f"{store.length:,} tokens"
    steps = {"ours": our_step(bench.runner, [store]), "sdpa": stock_step(bench.stock, store)}
    seen = interleave({**steps, **reads}, rounds)
    read = min((seen[name] for name in reads), key=lambda timed: timed.best)
    factor = bench.weight_bytes / (MATRICES * HEIGHT * WIDTH * 4)
    bandwidth = bench.weight_bytes / (read.best * factor * 1e-3) / 1e9
    return [
        Row("best read bandwidth, matrix-vector products over 256 MB", bandwidth, "GB/s"),
        ratio(
            f"step over the weights' bytes at that bandwidth, {tokens}",
            seen["ours"],
            read,
            "at most",
            1.6,
            factor=factor,
        ),
        ratio("  stock transformers, the same", seen["sdpa"], read, factor=factor),
    ]


def _against_stock(bench: Bench, store: KVStore, rounds: int, target: float) -> list[Row]:
    tokens = f"{store.length:,} tokens"
    seen = interleave(
        {
            "ours": our_step(bench.runner, [store]),
            "sdpa": stock_step(bench.stock, store),
            "eager": stock_step(bench.eager, store, outputs=True),
        },
        rounds,
    )
    return [
        ratio(f"eager with outputs over our step, {tokens}", seen["eager"], seen["ours"], "at least", target),
        ratio(f"stock (sdpa) over our step, {tokens}", seen["sdpa"], seen["ours"]),
    ]


def _capture(bench: Bench, store: KVStore, rounds: int) -> Row:
    """More rounds than the others: the difference is a hundredth."""
    tokens = f"{store.length:,} tokens"
    seen = interleave(
        {"on": our_step(bench.runner, [store]), "off": our_step(bench.runner_off, [store])},
        rounds,
    )
    return ratio(f"capture on over off, {tokens}", seen["on"], seen["off"], "at most", 1.05)


def _reads() -> dict[str, Variant]:
    """Matrix-vector products over more weights than any cache holds, by the two ways that may be fastest."""
    matrices = [torch.randn(HEIGHT, WIDTH) for _ in range(MATRICES)]
    x = torch.randn(1, WIDTH)
    found: dict[str, Variant] = {}
    for name, build in (("read stock", stock), ("read blocks", blocks)):
        kernels = [k for m in matrices if (k := build(m, None, torch.get_num_threads())) is not None]
        found[name] = Variant(lambda kernels=kernels: [kernel(x) for kernel in kernels])  # type: ignore[misc]
    return found
