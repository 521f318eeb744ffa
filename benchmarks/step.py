"""One session's step: against the memory's limit, llama.cpp and transformers, and against itself without capture.

The first goes through the engine, as users have it: another thread asks, and the engine's thread runs. The memory's
limit is the fastest of several ways to read more than any cache holds, so that no slow way flatters a step.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch

from benchmarks.llama_cpp import llama_steps
from benchmarks.results import Row, ratio
from benchmarks.setup import TOKEN, Bench, filled, matrices_by_shape, on, our_step, stock_step
from benchmarks.timing import Timed, Variant, interleave
from engine.config import StopRules
from engine.forward.kv_store import KVStore
from engine.kernels.choice import choose_kernels
from engine.kernels.linear import blocks, onednn, stock
from engine.session import DecodeSession

MATRICES, HEIGHT, WIDTH = 8, 8192, 1024  # 256 MB in turn: far more than a processor caches
READ_BYTES = MATRICES * HEIGHT * WIDTH * 4
PROMPT = tuple(range(1000, 1032))
SHORT, LONG = 32, 2048  # tokens of context
IN_A_ROW = 6  # steps of one kind, as a user's come


def engine_rows(bench: Bench, rounds: int) -> list[Row]:
    """A step through the engine against the faster of its bytes' time and llama.cpp. Call it from another thread."""
    session = bench.engine.create_session(stop=StopRules(max_new_tokens=10_000, use_end_ids=False))
    session.prefill(PROMPT).result()
    store = on(bench.engine, lambda: filled(bench.runner, SHORT))
    ways = on(bench.engine, _reads)

    threads = on(bench.engine, torch.get_num_threads)
    with llama_steps(bench.engine.stock, PROMPT, TOKEN, threads) as llama:
        stock = _on(bench, stock_step(bench.stock, store))
        reads = {name: _on(bench, way) for name, way in ways.items()}
        forwards: list[float] = []
        whole = Variant(lambda: forwards.append(_forward_ms(session)), turn=lambda: _rewound(session))
        turns = {"whole": whole, "sdpa": stock, **llama, **reads}
        seen = interleave(turns, max(4, rounds // 3), in_a_row=IN_A_ROW)
    session.close().result()
    forward = Timed(tuple(ms for number, ms in enumerate(forwards) if number >= IN_A_ROW and number % IN_A_ROW))
    return _engine_table(bench, seen, forward, list(reads))


@contextmanager
def _rewound(session: DecodeSession) -> Iterator[None]:
    """The session's next step is its first."""
    session.rewind(0).result()
    yield


def _forward_ms(session: DecodeSession) -> float:
    """The forward pass of one step of the session."""
    timing = session.step().result().timing
    assert timing is not None, "a step that was run was timed"
    return timing.forward_ms


def _engine_table(bench: Bench, seen: Mapping[str, Timed], forward: Timed, reads: Sequence[str]) -> list[Row]:
    factor = bench.weight_bytes / READ_BYTES
    name = min(reads, key=lambda name: seen[name].best)
    read = Timed(tuple(ms * factor for ms in seen[name].rounds_ms))  # of the weights' bytes
    faster = min((read, *(seen[other] for other in ("llama.cpp",) if other in seen)), key=lambda timed: timed.best)
    rows = [
        Row(f"best read bandwidth, {name}", bench.weight_bytes / (read.best * 1e-3) / 1e9, "GB/s"),
        ratio(f"a step's forward over the faster, {SHORT} tokens", forward, faster, "at most", 1.35),
        ratio("  over the weights' bytes at that bandwidth alone", forward, read),
        ratio("  the whole step, from asking to the record, over the same", seen["whole"], read),
        ratio("  stock transformers over the same", seen["sdpa"], read),
    ]
    if "llama.cpp" in seen:
        rows += [
            ratio("  llama.cpp over the same", seen["llama.cpp"], read),
            ratio("  a step's forward over llama.cpp", forward, seen["llama.cpp"]),
        ]
    return rows


def _on(bench: Bench, variant: Variant) -> Variant:
    """The same on the engine's thread."""
    return Variant(lambda: on(bench.engine, variant.run), lambda: on(bench.engine, variant.reset))


def step_rows(bench: Bench, rounds: int) -> list[Row]:
    """Rows at both lengths of context."""
    short, long = filled(bench.runner, SHORT), filled(bench.runner, LONG)
    return [
        *_against_stock(bench, short.fork(SHORT), rounds, 1.5),
        _capture(bench, short.fork(SHORT), 4 * rounds),
        *_against_stock(bench, long.fork(LONG), max(5, rounds // 2), 2.0),
        _capture(bench, long.fork(LONG), 4 * rounds),
    ]


def choosing_row(bench: Bench) -> Row:
    """What a first start spends on choosing kernels."""
    started = time.perf_counter()
    choose_kernels(matrices_by_shape(bench.stock), torch.get_num_threads())
    return Row("choosing kernels when loading for the first time", time.perf_counter() - started, "s")


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
    """Ways to read READ_BYTES, which no cache holds."""
    matrices = [torch.randn(HEIGHT, WIDTH) for _ in range(MATRICES)]
    x = torch.randn(1, WIDTH)
    values = torch.randn(MATRICES * HEIGHT * WIDTH)
    first, second = values.chunk(2)
    found = {
        "largest value": Variant(values.max),
        "dot product of two halves": Variant(lambda: torch.dot(first, second)),
    }
    for method in (stock, blocks, onednn):
        kernels = [k for m in matrices if (k := method(m, None, torch.get_num_threads())) is not None]
        if len(kernels) == MATRICES:
            name = f"matrix times vector, {method.__name__}"
            found[name] = Variant(lambda kernels=kernels: [kernel(x) for kernel in kernels])  # type: ignore[misc]
    return found
