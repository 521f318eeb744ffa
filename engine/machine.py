"""How fast this machine is, measured in under a second: reading memory as a decode step does, and multiplying.

Decode is matrix times vector over weights that do not stay in any cache, so that is what is swept, with the
kernels the engine itself picks from; a copy would count its writes. Arithmetic is the largest square product
that is worth its time. The best run is what the machine can do, the median what it did while others were busy.
"""

from __future__ import annotations

import datetime
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil
import torch
from torch import Tensor

from engine.linear_kernels import METHODS, Kernel
from engine.measure import synchronise

SWEEP_BYTES = {"cpu": 256 << 20, "cuda": 1 << 30}  # far more than any cache that is not counted below
MATRIX_BYTES = {"cpu": 16 << 20, "cuda": 256 << 20}
WIDTH = 2048  # of every matrix that is swept
SWEEP_S, MULTIPLY_S = 0.25, 0.2  # time to spend, allocation apart
MIN_RUNS = 3
SIDES = (512, 1024, 2048, 4096, 8192)  # of the square products, tried upwards while one is quick
LONG_S = 0.02  # a product that takes longer is large enough
MEMORY_SHARE = 0.25  # of what is free


@dataclass(frozen=True, slots=True)
class Rate:
    """Something per second: the best run, and the median of all."""

    best: float
    median: float
    runs: int


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


_known: dict[tuple[str, str, int], MachineRates] = {}
_one_at_a_time = threading.Lock()


def known(device: torch.device, dtype: torch.dtype) -> MachineRates | None:
    """What was measured earlier in this process for a device and a number format; None: not yet."""
    return _known.get(_key(device, dtype))


def measure(device: torch.device, dtype: torch.dtype, *, again: bool = False) -> MachineRates:
    """Measure once per process, device and number format. Nothing else should run meanwhile."""
    with _one_at_a_time, torch.inference_mode():
        if again or _key(device, dtype) not in _known:
            _known[_key(device, dtype)] = _measure(device, dtype)
        return _known[_key(device, dtype)]


def _key(device: torch.device, dtype: torch.dtype) -> tuple[str, str, int]:
    return str(device), str(dtype), torch.get_num_threads()


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
    contenders = {name: _pass(kernels, x) for name, kernels in _kernels(weights, x).items()}
    times = _times(contenders, device, SWEEP_S)
    method = min(times, key=lambda name: min(times[name]))
    return _rate(size, times[method]), method, size


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


def _pass(kernels: list[Kernel], x: Tensor) -> Callable[[], None]:
    def run() -> None:
        for kernel in kernels:
            kernel(x)

    return run


def _times(contenders: dict[str, Callable[[], None]], device: torch.device, budget: float) -> dict[str, list[float]]:
    """Seconds of each contender's runs, in turn until the time is up; hopeless ones run once."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    started = time.perf_counter()
    for name, run in contenders.items():
        times[name].append(_seconds(run, device))
    best = min(spent[0] for spent in times.values())
    going = [name for name, spent in times.items() if spent[0] < 2 * best]
    while time.perf_counter() - started < budget or min(len(times[name]) for name in going) < MIN_RUNS:
        for name in going:
            times[name].append(_seconds(contenders[name], device))
    return times


def _seconds(run: Callable[[], object], device: torch.device) -> float:
    synchronise(device)
    started = time.perf_counter()
    run()
    synchronise(device)
    return time.perf_counter() - started


def _multiply(device: torch.device, dtype: torch.dtype) -> tuple[Rate, int]:
    """Square products, larger while they are quick; runs of the size that was fastest."""
    best_rate, chosen = 0.0, SIDES[0]
    for side in SIDES:
        product = _square(side, device, dtype)
        product()
        spent = _seconds(product, device)
        if 2 * side**3 / spent > best_rate:
            best_rate, chosen = 2 * side**3 / spent, side
        if spent > LONG_S:
            break
    product = _square(chosen, device, dtype)
    times = _times({"square": product}, device, MULTIPLY_S)["square"]
    return _rate(2 * chosen**3, times), chosen


def _square(side: int, device: torch.device, dtype: torch.dtype) -> Callable[[], None]:
    a = torch.full((side, side), 0.5, dtype=dtype, device=device)
    b = torch.full((side, side), 0.5, dtype=dtype, device=device)
    out = torch.empty_like(a)

    def run() -> None:
        torch.mm(a, b, out=out)

    return run


def _rate(amount: float, seconds: list[float]) -> Rate:
    return Rate(amount / min(seconds), amount / statistics.median(seconds), len(seconds))
