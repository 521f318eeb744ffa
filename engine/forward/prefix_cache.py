"""Prompts that were prefilled, kept for the next session that opens the same: a copy of the cache costs no forward.

A snapshot belongs to no session: its bytes count once, and the least recently used goes when they pass the
budget. A prompt that only begins like a kept one takes over the chunks they share. Chunks start at multiples of
the chunk length whoever feeds them, so what is taken over is, bit for bit, what its own prefill would have given.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from engine.forward.capture import Capture
from engine.forward.kv_store import KVStore

Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PromptSnapshot:
    """A prompt's cache, never written again, and the row that followed its last token."""

    store: KVStore
    row: Capture

    @property
    def num_bytes(self) -> int:
        return self.store.reserved_bytes + self.row.num_bytes


class PrefixCache:
    """Snapshots by prompt, within `budget` bytes; 0 keeps nothing. Lives on the engine thread."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.num_bytes = 0
        self._snapshots: OrderedDict[Ids, PromptSnapshot] = OrderedDict()
        self._filling: set[Ids] = set()

    def find(self, ids: Ids) -> PromptSnapshot | None:
        """The snapshot of exactly this prompt."""
        known = self._snapshots.get(ids)
        if known is not None:
            self._snapshots.move_to_end(ids)
        return known

    def fork_common(self, ids: Ids, chunk: int, is_alike: Callable[[Ids], bool] = lambda _: True) -> KVStore | None:
        """A store that holds the longest run of whole chunks that `ids` shares with a kept prompt.

        At least one token is left to feed: its row draws the first token. `is_alike` says of a kept prompt whether
        what it begins with would have the same keys here.
        """
        shared = {known: _common_chunks(known, ids, chunk) for known in self._snapshots if is_alike(known)}
        best = max(shared, key=shared.__getitem__, default=None)
        if best is None or shared[best] == 0:
            return None
        self._snapshots.move_to_end(best)
        return self._snapshots[best].store.fork(shared[best] * chunk)

    def put(self, ids: Ids, store: KVStore, row: Capture) -> None:
        """Keep a copy of a prompt's cache, if it fits at all."""
        if store.bytes_at(len(ids)) + row.num_bytes > self.budget or ids in self._snapshots:
            return
        snapshot = PromptSnapshot(store.fork(len(ids)), row)
        self._snapshots[ids] = snapshot
        self.num_bytes += snapshot.num_bytes
        while self.num_bytes > self.budget:
            _, oldest = self._snapshots.popitem(last=False)
            self.num_bytes -= oldest.num_bytes

    def is_filling(self, ids: Ids) -> bool:
        """True while another session prefills exactly this prompt: wait for it, and copy."""
        return ids in self._filling

    @contextmanager
    def filling(self, ids: Ids) -> Iterator[None]:
        """Say that this prompt is being prefilled, until it is done, has failed or was given up."""
        if self.budget == 0:
            yield
            return
        self._filling.add(ids)
        try:
            yield
        finally:
            self._filling.discard(ids)

    def clear(self) -> None:
        """Forget every snapshot."""
        self._snapshots.clear()
        self.num_bytes = 0


def _common_chunks(known: Ids, ids: Ids, chunk: int) -> int:
    """Whole chunks that both begin with, leaving at least one token of `ids`."""
    most, count = (min(len(known), len(ids) - 1)) // chunk, 0
    while count < most and known[count * chunk : (count + 1) * chunk] == ids[count * chunk : (count + 1) * chunk]:
        count += 1
    return count
