"""Which sessions there are, who was touched last, and what each one's cache takes: how memory is kept in bounds.

The table never keeps a session alive: one that nobody holds any more gives its place and its bytes back by itself.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Set
from dataclasses import dataclass
from weakref import WeakValueDictionary

from engine.config import Budgets
from engine.decode.session_state import SessionState
from engine.errors import EngineFull
from engine.forward.scratch import Scratch


@dataclass(frozen=True, slots=True)
class KVBytes:
    """Bytes of keys and values: of the tokens held, and of the buffers they are in."""

    live: int = 0
    reserved: int = 0


class SessionTable:
    """Sessions by key, least recently touched first. Any thread admits and reads; the engine thread evicts."""

    def __init__(self, budgets: Budgets, scratch: Scratch | None = None) -> None:
        self.budgets = budgets
        self.scratch = scratch or Scratch()  # what is held beside the sessions, within the same budget
        self._lock = threading.Lock()
        self._states: WeakValueDictionary[str, SessionState] = WeakValueDictionary()
        self._bytes: OrderedDict[str, KVBytes] = OrderedDict()

    def __len__(self) -> int:
        return len(self._states)

    def admit(self, key: str, state: SessionState) -> None:
        """Give a new session a place, or raise where there is none."""
        most = self.budgets.max_sessions
        with self._lock:
            if most and len(self._states) >= most:
                raise EngineFull(f"All {most} places are taken. Close a session, or wait until somebody leaves.")
            self._states[key] = state
        self.measure(key)

    def remove(self, key: str) -> None:
        """Take a session's place back."""
        with self._lock:
            self._states.pop(key, None)
            self._bytes.pop(key, None)

    def touch(self, key: str, now: KVBytes) -> None:
        """This session was just used, and its cache now takes so much."""
        with self._lock:
            if key in self._states:
                self._bytes[key] = now
                self._bytes.move_to_end(key)

    def measure(self, key: str) -> None:
        """Touch a session after a piece of work: what it puts beside the old cache counts from its first piece on."""
        state = self._states.get(key)
        if state is not None:
            self.touch(key, KVBytes(state.live_bytes, state.reserved_bytes))

    def total(self) -> KVBytes:
        """What all caches take: the sessions', and those of studies and checks under way."""
        beside = KVBytes(self.scratch.live_bytes, self.scratch.reserved_bytes)
        with self._lock:
            for gone in [key for key in self._bytes if key not in self._states]:
                del self._bytes[gone]
            held = (beside, *self._bytes.values())
            return KVBytes(sum(b.live for b in held), sum(b.reserved for b in held))

    def each(self) -> tuple[KVBytes, ...]:
        """What every session's cache takes that holds any, largest first: sizes, and no word of whose they are."""
        with self._lock:
            held = [taken for key, taken in self._bytes.items() if key in self._states and taken.live]
        return tuple(sorted(held, key=lambda taken: (taken.live, taken.reserved), reverse=True))

    def keep_within_budget(self, busy: Set[str], *, spares_last: bool = True) -> int:
        """Release caches until the budget is met, if it can be; the number released.

        Never one that somebody waits for, and not the one touched last: it would be rebuilt at every step. Only where
        somebody's look needs the room it may be that one.
        """
        over, released = self._over_budget(), 0
        if over <= 0:
            return 0
        for key, held in self._idle({*busy, self._touched_last()} if spares_last else busy):
            if over <= 0:
                break
            self._release(key)
            over, released = over - held.reserved, released + 1
        return released

    def is_over_budget(self) -> bool:
        """Whether all caches together take more than they may."""
        return self._over_budget() > 0

    def _over_budget(self) -> int:
        return self.total().reserved - self.budgets.kv_bytes if self.budgets.kv_bytes else 0

    def release_idle(self, busy: Set[str]) -> int:
        """Release the cache of everybody who waits for nothing; the number released."""
        idle = self._idle(busy)
        for key, _ in idle:
            self._release(key)
        return len(idle)

    def _idle(self, busy: Set[str]) -> list[tuple[str, KVBytes]]:
        with self._lock:
            return [(key, held) for key, held in self._bytes.items() if key not in busy and held.reserved]

    def _touched_last(self) -> str:
        with self._lock:
            return next(reversed(self._bytes), "")

    def _release(self, key: str) -> None:
        state = self._states.get(key)
        if state is not None:
            state.release()
        with self._lock:
            if key in self._bytes:
                self._bytes[key] = KVBytes()
