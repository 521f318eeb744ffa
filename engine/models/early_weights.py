"""Weights that are read while torch is still being imported, straight to where they will be used.

transformers maps the file into memory, at addresses that make every forward several times slower, so the weights have
to be copied once. Here that copy is made by the read itself: matrices that read the same input side by side, so that
their products can be joined where they lie, each at an address that suits the processor. Importing torch keeps one
core busy for a second or two; reading and hashing half a gigabyte takes the other as long.

Nothing here needs torch. Where anything is not as expected, nothing is read early, and the loader does all of it.
"""

from __future__ import annotations

import mmap
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from engine.config import EngineConfig
from engine.errors import LoupeError
from engine.models.fit import free_memory
from engine.models.model_folder import check_contents, read_manifest
from engine.models.safetensors_files import StoredTensor, read_header, weight_files
from engine.models.source import is_ready, locate

ALIGNED = 64  # bytes: a cache line, and the widest vector of a processor
SIDE_BY_SIDE = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"))  # modules that read the same input
MEMORY_SHARE = 0.5  # of what is free; the loader asks again, and refuses in words
MOST_VIEWS = 512  # places of one read; systems allow 1,024

T = TypeVar("T")
Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class EarlyTensor:
    """One tensor, as it was read.

    whole    the values of it and of those beside it, in memory that they share with nobody else
    start    the first of its own
    stored   what the header of `file` says of it
    """

    whole: Floats
    start: int
    stored: StoredTensor
    file: Path


class EarlyWeights:
    """A folder that is being read: its weights to where they will be used, its files for the check of their bytes."""

    def __init__(self, folder: Path, *, read: bool = True) -> None:
        """Begin. Without `read`, the bytes are checked alone."""
        self.folder = folder
        manifest = read_manifest(folder)
        self._contents = None if manifest is None else _beside(lambda: check_contents(folder, manifest))
        self._tensors = _beside(lambda: _read(folder)) if read else None

    def tensors(self) -> Mapping[str, EarlyTensor]:
        """By their names in the files, once they are read; empty where they could not be read early."""
        if self._tensors is None:
            return {}
        try:
            return self._tensors.result()
        except (OSError, ValueError, MemoryError, LoupeError):  # the loader finds it too, and says it in words
            return {}

    def check(self) -> None:
        """Wait for the check of its bytes. Raises CorruptModel; a folder without a manifest has nothing to check."""
        if self._contents is not None:
            self._contents.result()


def begin(config: EngineConfig) -> EarlyWeights | None:
    """Begin to read what `config` names, where it lies on this machine and will be used on a CPU as it is."""
    if config.device == "cuda" or config.dtype not in ("auto", "float32") or not is_ready(config.model):
        return None
    try:
        return EarlyWeights(locate(config.model, lambda text, done: None).folder)
    except (OSError, LoupeError):
        return None


def _beside(work: Callable[[], T]) -> Future[T]:
    """`work` in a thread of its own, which ends with it."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name="loupe-read", daemon=True).start()
    return future


def _read(folder: Path) -> Mapping[str, EarlyTensor]:
    files = {path: read_header(path) for path in weight_files(folder)}
    stored = {name: (path, tensor) for path, header in files.items() for name, tensor in header.items()}
    kinds = {tensor.dtype for _, tensor in stored.values()}
    size = sum(4 * tensor.values for _, tensor in stored.values())
    if kinds != {"F32"} or not all(tensor.values for _, tensor in stored.values()):
        return {}
    if size > MEMORY_SHARE * free_memory():
        return {}
    places = _places(stored)
    for path, header in files.items():
        _fill(path, sorted(header.items(), key=lambda item: item[1].offset), places)
    return places


def _places(stored: Mapping[str, tuple[Path, StoredTensor]]) -> dict[str, EarlyTensor]:
    """Where each tensor goes, in memory that is not filled yet."""
    groups = list(_groups(stored))
    sizes = [sum(stored[name][1].values for name in group) for group in groups]
    room = [-(-4 * size // ALIGNED) * ALIGNED for size in sizes]  # rounded up
    memory, place = _memory(sum(room)), 0
    found = {}
    for group, size, taken in zip(groups, sizes, room, strict=True):
        whole, start = memory[place : place + 4 * size].view(np.float32), 0
        for name in group:
            path, tensor = stored[name]
            found[name] = EarlyTensor(whole, start, tensor, path)
            start += tensor.values
        place += taken
    return found


def _memory(size: int) -> Bytes:
    """Pages from the system, aligned by themselves. numpy would ask for huge ones, which take long to find."""
    private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
    return np.frombuffer(mmap.mmap(-1, size, **private), np.uint8)


def _groups(names: Mapping[str, object]) -> Iterator[tuple[str, ...]]:
    """Names that lie side by side, in the order in which their products are joined; every other name alone."""
    grouped: set[str] = set()
    for name in names:
        for modules in SIDE_BY_SIDE:
            if f".{modules[0]}." not in name:
                continue
            group = tuple(name.replace(f".{modules[0]}.", f".{module}.") for module in modules)
            if all(one in names for one in group):
                grouped.update(group)
                yield group
    yield from ((name,) for name in names if name not in grouped)


def _fill(path: Path, header: Sequence[tuple[str, StoredTensor]], places: Mapping[str, EarlyTensor]) -> None:
    """Read a file's tensors, which lie in it one after another, each to its place."""
    views: list[memoryview] = []
    begin = end = header[0][1].offset
    for name, tensor in header:
        if tensor.offset != end:
            raise ValueError(f"{path} has a gap before {name}")
        place = places[name]
        views.append(place.whole[place.start : place.start + tensor.values].view(np.uint8).data)
        end += 4 * tensor.values
    with path.open("rb", buffering=0) as file:
        if hasattr(os, "preadv"):
            _scatter(file.fileno(), views, begin)
            return
        file.seek(begin)
        for view in views:
            _whole(file.readinto(view), len(view))


def _scatter(file: int, views: list[memoryview], offset: int) -> None:
    """Fill all views from `offset` on in few calls: after each one this thread has to ask for the interpreter again."""
    while views:
        got = os.preadv(file, views[:MOST_VIEWS], offset)
        _whole(got > 0, True)
        offset += got
        while views and got >= len(views[0]):
            got -= len(views.pop(0))
        if got:
            views[0] = views[0][got:]


def _whole(got: int | None, wanted: int) -> None:
    if got != wanted:
        raise OSError("the file is shorter than its header says")
