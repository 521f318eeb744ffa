"""How fast this machine is, measured in under a second: reading memory as a decode step does, and multiplying.

Decode is matrix times vector over weights that do not stay in any cache, so that is what is swept, with the
kernels the engine itself picks from; a copy would count its writes. Arithmetic is a square product. The best is
what the machine can do, each matrix at its best moment; the median is what it did while others were busy.
"""

from __future__ import annotations

import datetime
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import psutil
import torch
from torch import Tensor

from engine.kernels.linear import METHODS, Kernel
from engine.measure.clocks import synchronise

SWEEP_BYTES = {"cpu": 128 << 20, "cuda": 1 << 30}  # at least; and four times the largest cache
MATRIX_BYTES = {"cpu": 8 << 20, "cuda": 256 << 20}
WIDTH = 2048  # of every matrix that is swept
SWEEP_S, MULTIPLY_S = 0.25, 0.15  # time to spend, allocation apart
MIN_PASSES, PATIENCE = 3, 2  # on a busy machine as many passes, but not for more than this many times as long
SAMPLE, ROUNDS = 3, 4  # matrices and rounds that the kernel is chosen by
SIDES = (256, 512, 1024, 2048, 4096, 8192)  # of the square products, tried upwards while one is quick
LONG_S = 0.02  # a product that takes longer is large enough
MEMORY_SHARE = 0.25  # of what is free

Pass = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Rate:
    """Something per second, at best and in the middle of `passes`."""

    best: float
    median: float
    passes: int

    def with_earlier(self, earlier: Rate) -> Rate:
        """What was once seen can be done: the better best of two measurements, and this one's median."""
        return replace(self, best=max(self.best, earlier.best))


@dataclass(frozen=True, slots=True)
class MachineRates:
    """This machine, measured.

    gemv    bytes per second read from memory by matrix times vector, the operation decode is made of
    gemm    operations per second of a square product
    at      when, in ISO form (UTC); `seconds` is what measuring took
    method  the kernel that read fastest; `side` is of the square that multiplied fastest
    """

    gemv_bytes_per_s: Rate
    gemm_flops_per_s: Rate
    dtype: str
    device: str
    threads: int
    at: str
    seconds: float
    method: str
    swept_bytes: int
    side: int

    @property
    def ridge(self) -> float:
        """Operations per byte at which this machine computes as long as it reads."""
        return self.gemm_flops_per_s.best / self.gemv_bytes_per_s.best


_known: dict[tuple[str, str], MachineRates] = {}
_one_at_a_time = threading.Lock()


def known(device: torch.device, dtype: torch.dtype) -> MachineRates | None:
    """What was measured earlier in this process for a device and a number format; None: not yet."""
    return _known.get(_key(device, dtype))


def measure(device: torch.device, dtype: torch.dtype, *, again: bool = False) -> MachineRates:
    """Measure once per process, device and number format, unless asked again. Nothing else should run meanwhile."""
    key = _key(device, dtype)
    with _one_at_a_time, torch.inference_mode():
        earlier = _known.get(key)
        if again or earlier is None:
            _known[key] = _better(_measure(device, dtype), earlier)
        return _known[key]


def _better(found: MachineRates, earlier: MachineRates | None) -> MachineRates:
    if earlier is None:
        return found
    return replace(
        found,
        gemv_bytes_per_s=found.gemv_bytes_per_s.with_earlier(earlier.gemv_bytes_per_s),
        gemm_flops_per_s=found.gemm_flops_per_s.with_earlier(earlier.gemm_flops_per_s),
    )


def _key(device: torch.device, dtype: torch.dtype) -> tuple[str, str]:
    return str(device), str(dtype)  # not the number of threads: each thread of a program has one of its own


def _measure(device: torch.device, dtype: torch.dtype) -> MachineRates:
    started = time.perf_counter()
    sweep, method, swept = _sweep(device, dtype)
    multiply, side = _multiply(device, dtype)
    return MachineRates(
        gemv_bytes_per_s=sweep,
        gemm_flops_per_s=multiply,
        dtype=str(dtype).removeprefix("torch."),
        device=str(device),
        threads=torch.get_num_threads(),
        at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        seconds=time.perf_counter() - started,
        method=method,
        swept_bytes=swept,
        side=side,
    )


def _sweep(device: torch.device, dtype: torch.dtype) -> tuple[Rate, str, int]:
    """One row against matrices in turn, each method over all of them, so that every pass comes from memory."""
    rows = MATRIX_BYTES[device.type] // (WIDTH * dtype.itemsize)
    count = max(2, _sweep_bytes(device) // MATRIX_BYTES[device.type])
    weights = [torch.full((rows, WIDTH), 0.5, dtype=dtype, device=device) for _ in range(count)]  # (O, K) each
    x = torch.full((1, WIDTH), 0.5, dtype=dtype, device=device)
    size = sum(weight.numel() * weight.element_size() for weight in weights)
    passes: dict[str, list[Pass]] = {
        name: [partial(kernel, x) for kernel in kernels] for name, kernels in _kernels(weights, x).items()
    }
    method = _quickest({name: runs[:SAMPLE] for name, runs in passes.items()}, device)
    return _rate(size, _times(passes[method], device, SWEEP_S)), method, size


def _quickest(samples: dict[str, list[Pass]], device: torch.device) -> str:
    """The method that takes least over a few matrices, each at its best of a few rounds, all methods in turn."""
    times: dict[str, list[list[float]]] = {name: [] for name in samples}
    for _ in range(ROUNDS):
        for name, runs in samples.items():
            times[name].append([_seconds(run, device) for run in runs])
    return min(times, key=lambda name: _undisturbed(times[name]))


def _sweep_bytes(device: torch.device) -> int:
    on_gpu = device.type == "cuda"
    free = torch.cuda.mem_get_info(device)[0] if on_gpu else psutil.virtual_memory().available
    wanted = max(SWEEP_BYTES[device.type], 4 * _last_level_cache())
    return int(min(wanted, free * MEMORY_SHARE))


def _last_level_cache() -> int:
    """Bytes of the largest processor cache, where the system says; 0 elsewhere."""
    sizes = []
    for file in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        text = file.read_text().strip()
        if text.endswith("K") and text[:-1].isdigit():
            sizes.append(int(text[:-1]) << 10)
    return max(sizes, default=0)


def _kernels(weights: list[Tensor], x: Tensor) -> dict[str, list[Kernel]]:
    """The engine's ways to multiply one row that can do it here, each warm."""
    found: dict[str, list[Kernel]] = {}
    threads = torch.get_num_threads()
    for method in METHODS:
        if 1 not in method.rows or (x.device.type == "cuda" and method.name != "stock"):
            continue
        kernels = [kernel for weight in weights if (kernel := method.build(weight, None, threads))]
        if len(kernels) == len(weights) and _runs(kernels[0], x):
            found[method.name] = kernels
    return found


def _runs(kernel: Kernel, x: Tensor) -> bool:
    try:
        kernel(x)
    except RuntimeError:  # an operation that is not there for this number format
        return False
    return True


def _times(runs: list[Pass], device: torch.device, budget: float) -> list[list[float]]:
    """Passes over all runs until the time is up, as seconds of each run."""
    passes: list[list[float]] = []
    started = time.perf_counter()
    while (spent := time.perf_counter() - started) < budget or (spent < PATIENCE * budget and len(passes) < MIN_PASSES):
        passes.append([_seconds(run, device) for run in runs])
    return passes


def _seconds(run: Pass, device: torch.device) -> float:
    synchronise(device)
    started = time.perf_counter()
    run()
    synchronise(device)
    return time.perf_counter() - started


def _multiply(device: torch.device, dtype: torch.dtype) -> tuple[Rate, int]:
    """Square products of several sizes, larger while they are quick; the size that is fastest."""
    products: dict[int, Pass] = {}
    for side in SIDES:
        products[side] = _square(side, device, dtype)
        products[side]()
        if _seconds(products[side], device) > LONG_S:
            break
    times = {side: _times([run], device, MULTIPLY_S / len(products)) for side, run in products.items()}
    side = min(times, key=lambda side: _undisturbed(times[side]) / side**3)
    return _rate(2 * side**3, times[side]), side


def _square(side: int, device: torch.device, dtype: torch.dtype) -> Pass:
    a = torch.full((side, side), 0.5, dtype=dtype, device=device)
    b = torch.full((side, side), 0.5, dtype=dtype, device=device)
    return partial(torch.mm, a, b, out=torch.empty_like(a))


def _undisturbed(passes: list[list[float]]) -> float:
    """Seconds of a pass whose every run had its best moment."""
    total: float = sum(min(run) for run in zip(*passes, strict=True))
    return total


def _rate(amount: float, passes: list[list[float]]) -> Rate:
    whole = [sum(one) for one in passes]
    return Rate(amount / _undisturbed(passes), amount / statistics.median(whole), len(passes))
