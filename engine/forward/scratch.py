"""Caches that no session owns: what studies, races and checks hold while they run. They count like everybody's.

A store is counted for as long as somebody holds it; nobody has to give it back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakSet

from engine.forward.kv_store import KVStore


class Scratch:
    """The stores that are out, and other tensors of their kind. Lives on the engine thread; any thread reads the bytes.

    reserved_bytes, live_bytes  allocated, and of these those of tokens held, when they were last measured
    """

    def __init__(self) -> None:
        self.reserved_bytes = self.live_bytes = 0
        self._stores: WeakSet[KVStore] = WeakSet()
        self._elsewhere = 0  # bytes in caches that are not ours: transformers' own, say

    def count(self, store: KVStore) -> KVStore:
        """Count `store` from now on."""
        self._stores.add(store)
        return store

    @contextmanager
    def holding(self, num_bytes: int) -> Iterator[None]:
        """Count so many bytes of a cache that is no store of ours, until this is over."""
        self._elsewhere += num_bytes
        try:
            yield
        finally:
            self._elsewhere -= num_bytes

    def measure(self) -> None:
        """See how large they are by now."""
        self.reserved_bytes = self._elsewhere + sum(store.reserved_bytes for store in self._stores)
        self.live_bytes = self._elsewhere + sum(store.live_bytes for store in self._stores)
