"""Play: the server asks for step after step, each once the one before is on screen.

So it never runs ahead of what is seen, and it waits by itself where a page is hidden or a network slow.
"""

from __future__ import annotations

import asyncio
from asyncio import sleep
from collections.abc import Awaitable, Callable

from explorer.live.commands import Outcome
from explorer.live.frame import Json
from explorer.operations import checked
from explorer.operations.operation import Args, plain

MOST_SPEED = 1_000.0  # steps a second


class Autoplay:
    """Plays the run on screen.

    step        makes one step
    is_over     whether the run has ended
    on_change   there is something new to show
    """

    def __init__(
        self, step: Callable[[], Awaitable[Outcome]], is_over: Callable[[], bool], on_change: Callable[[], None]
    ) -> None:
        self._step, self._is_over, self._on_change = step, is_over, on_change
        self._playing: asyncio.Task[None] | None = None
        self._drawn = asyncio.Event()
        self._pause_s = 0.0
        self._speed: float | None = None
        self._error: str | None = None

    @property
    def is_on(self) -> bool:
        """Whether it plays."""
        return self._playing is not None

    def json(self) -> dict[str, Json]:
        """What the page shows."""
        return {"on": self.is_on, "speed": self._speed, "error": self._error}

    def obey(self, op: str, args: Args) -> Outcome:
        """`play` at a speed (again: at another), or `pause`."""
        try:
            if op == "pause":
                self.pause()
            else:
                self._play(_speed(args.get("speed")))
        except checked.BadCommand as error:
            return Outcome(error=("BadCommand", str(error)))
        return Outcome(value=plain())

    def pause(self) -> None:
        """Ask for no more steps. One that is under way still comes."""
        playing, self._playing = self._playing, None
        if playing is not None:
            playing.cancel()
            self._on_change()

    def drawn(self) -> None:
        """Everything that was sent is on screen."""
        self._drawn.set()

    def _play(self, speed: float | None) -> None:
        self._speed, self._error = speed, None
        self._pause_s = 1 / speed if speed else 0.0
        if self._playing is None:
            self._playing = asyncio.get_running_loop().create_task(self._play_on())

    async def _play_on(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while not self._is_over():
                began = loop.time()
                outcome = await self._step()
                self._drawn.clear()
                if outcome.error is not None:
                    self._error = outcome.error[1]
                    break
                await self._drawn.wait()
                await sleep(max(0.0, began + self._pause_s - loop.time()))
        finally:
            if asyncio.current_task() is self._playing:
                self._playing = None
                self._on_change()


def _speed(value: object) -> float | None:
    """Steps a second; None: as fast as they come."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= MOST_SPEED:
        given = checked.short(value)
        raise checked.BadCommand(f"speed must be above 0 and at most {MOST_SPEED:,.0f} steps a second, got {given}.")
    return float(value)
