"""Whether PyTorch's threads wait awake or asleep: awake where the cores are ours, asleep where others want them too.

Between two operations OpenMP's threads spin, which is fastest while each has a core of its own. Where other programs
want the cores, a thread that spins waits for one that may not run, and a step takes ten times as long. GNU's OpenMP
lets all threads of a process sleep as soon as it manages more of them than there are cores; so where the system takes
the cores away often, a second team is kept: made by a thread that computes once and then only waits.
"""

from __future__ import annotations

import sys
import threading
import time

import torch

WINDOW_S = 0.1  # of the engine's own work, after which is judged
CROWDED = 300.0  # times per second that a core was taken away: others want them
CALM = 100.0  # and below this, nobody does
CALM_WINDOWS = 20  # one after another, until the threads stay awake again
ENOUGH_VALUES = 1 << 18  # for an operation that PyTorch shares between its threads


class Crowding:
    """Watches the engine's turns, and keeps or drops the second team. Lives on the engine thread."""

    def __init__(self) -> None:
        self._second: _SecondTeam | None = None
        self._began, self._taken = 0.0, 0
        self._busy_s, self._lost, self._calm = 0.0, 0, 0

    @property
    def is_crowded(self) -> bool:
        """Whether the threads sleep between two operations."""
        return self._second is not None

    def begin(self) -> None:
        """A turn begins. What the system does between turns says nothing of them."""
        self._began, self._taken = time.perf_counter(), taken_away()

    def end(self) -> None:
        """A turn is over: judge, once enough of them were seen."""
        self._busy_s += time.perf_counter() - self._began
        self._lost += taken_away() - self._taken
        if self._busy_s < WINDOW_S:
            return
        self._judge(self._lost / self._busy_s)
        self._busy_s, self._lost = 0.0, 0

    def close(self) -> None:
        """Drop the second team."""
        if self._second is not None:
            self._second.end()
            self._second = None

    def _judge(self, per_second: float) -> None:
        self._calm = self._calm + 1 if per_second < CALM else 0
        if per_second > CROWDED and self._second is None:
            self._second = _SecondTeam()
        elif self._calm >= CALM_WINDOWS:
            self.close()


class _SecondTeam:
    """A thread that has let PyTorch compute in parallel once, and so has a team for as long as it lives."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._hold, name="loupe-second-team", daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        self._thread.join()

    def _hold(self) -> None:
        torch.ones(ENOUGH_VALUES).add_(1.0)
        self._over.wait()


def taken_away() -> int:
    """How often a core was taken from a thread of this process that wanted to go on; 0 where it makes no difference."""
    if sys.platform != "linux":
        return 0
    import resource  # not there on Windows

    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
