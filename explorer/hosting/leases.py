"""Who uses which session, and when its tensors may go.

A browser tab owns a session by a token of its own. Losing the connection does not free anything at once:
a reload, or a train in a tunnel, comes back within the grace period. Only then are the tensors freed; the
recipe stays much longer, because it costs nothing.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Literal, Protocol, TypeVar

log = logging.getLogger(__name__)

Claim = Literal["yours", "taken", "unknown"]


class Tenant(Protocol):
    """What is leased: something that can give its tensors back."""

    @property
    def sid(self) -> str:
        """Its unguessable name."""
        ...

    @property
    def last_used(self) -> float:
        """When it was last asked for anything, by the registry's clock."""
        ...

    def sleep(self) -> None:
        """Free tensors, keep the recipe."""
        ...

    def part(self) -> None:
        """The same, where whoever used it is gone: what runs must stop as well."""
        ...

    def close(self) -> object:
        """Give everything back for good."""
        ...


T = TypeVar("T", bound=Tenant)


@dataclass(frozen=True, slots=True)
class Lease:
    """One owner's hold on one session."""

    sid: str
    owner: str


@dataclass(slots=True)
class _Held(Generic[T]):
    tenant: T
    owner: str | None
    last_owner: str
    left_at: float = 0.0
    slept_after: float | None = None  # `last_used` when it was put to sleep; used again since where it differs


@dataclass(frozen=True, slots=True)
class Limits:
    """In seconds.

    grace     without an owner, until tensors are freed
    idle      owned but not used, until tensors are freed
    forget    without an owner, until recipe and records go as well
    abandon   owned but not used, until those go
    """

    grace_s: float = 60.0
    idle_s: float = 900.0
    forget_s: float = 3_600.0
    abandon_s: float = 6 * 3_600.0


class Registry(Generic[T]):
    """All sessions of this process by their names."""

    def __init__(self, limits: Limits | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits or Limits()
        self.clock = clock
        self._lock = threading.Lock()  # held for a moment only: the event loop takes it
        self._held: dict[str, _Held[T]] = {}

    def add(self, tenant: T, owner: str) -> None:
        """Take in a new session."""
        with self._lock:
            self._held[tenant.sid] = _Held(tenant, owner, owner)

    def get(self, sid: str) -> T | None:
        """A session by its name."""
        with self._lock:
            held = self._held.get(sid)
            return held.tenant if held else None

    def of_owner(self, owner: str) -> str | None:
        """The session that this owner has, or had until its connection was lost and nobody else has since."""
        with self._lock:
            return next((sid for sid, held in self._held.items() if held.last_owner == owner), None)

    def claim(self, sid: str, owner: str) -> Claim:
        """Become the owner of a session that has none. One that another live tab owns is not shared."""
        with self._lock:
            held = self._held.get(sid)
            if held is None:
                return "unknown"
            if held.owner not in (None, owner):
                return "taken"
            held.owner = held.last_owner = owner
            return "yours"

    def release(self, lease: Lease) -> None:
        """The owner's connection is gone. A late word of it does not take the session from the next owner."""
        with self._lock:
            held = self._held.get(lease.sid)
            if held and held.owner == lease.owner:
                held.owner, held.left_at = None, self.clock()

    def drop(self, sid: str) -> None:
        """Close a session that nobody will ask for again."""
        with self._lock:
            held = self._held.pop(sid, None)
        if held:
            held.tenant.close()

    def take_longest_gone(self) -> T | None:
        """Take out the session whose owner left longest ago, beyond the grace period. The caller closes it."""
        with self._lock:
            gone = [held for held in self._held.values() if not self._has_place(held)]
            if not gone:
                return None
            held = min(gone, key=lambda held: held.left_at)
            return self._held.pop(held.tenant.sid).tenant

    def reap(self) -> None:
        """Free what has been left or idle for too long. Called now and then."""
        with self._lock:
            forgotten = [held for held in self._held.values() if self._is_forgotten(held)]
            for held in forgotten:
                del self._held[held.tenant.sid]
            sleepy = [held for held in self._held.values() if self._may_sleep(held)]
        for held in forgotten:
            held.tenant.close()
        for held in sleepy:
            held.slept_after = held.tenant.last_used
            if held.owner is None:
                held.tenant.part()
            else:
                held.tenant.sleep()

    def in_use(self) -> int:
        """Sessions that take up a place: owned, or left so lately that their owner may come back."""
        with self._lock:
            return sum(self._has_place(held) for held in self._held.values())

    def with_place(self) -> list[T]:
        """Those that take up a place."""
        with self._lock:
            return [held.tenant for held in self._held.values() if self._has_place(held)]

    def keeps_place(self, sid: str) -> bool:
        """Whether this session takes up a place that its owner may come back to."""
        with self._lock:
            held = self._held.get(sid)
            return held is not None and held.owner is None and self._has_place(held)

    def tenants(self) -> list[T]:
        """All of them, as they are now."""
        with self._lock:
            return [held.tenant for held in self._held.values()]

    def owned(self) -> list[T]:
        """Those whose owner is connected now."""
        with self._lock:
            return [held.tenant for held in self._held.values() if held.owner is not None]

    def __len__(self) -> int:
        with self._lock:
            return len(self._held)

    def _has_place(self, held: _Held[T]) -> bool:
        return held.owner is not None or self.clock() - held.left_at < self.limits.grace_s

    def _may_sleep(self, held: _Held[T]) -> bool:
        if held.slept_after == held.tenant.last_used:
            return False
        if held.owner is None and self.clock() - held.left_at >= self.limits.grace_s:
            return True
        return self.clock() - held.tenant.last_used >= self.limits.idle_s

    def _is_forgotten(self, held: _Held[T]) -> bool:
        if held.owner is None:
            return self.clock() - held.left_at >= self.limits.forget_s
        return self.clock() - held.tenant.last_used >= self.limits.abandon_s
