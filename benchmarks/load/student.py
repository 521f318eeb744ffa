"""One person in the class: opens the page, prefills, presses Step about every three seconds, and has habits."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from benchmarks.load.connection import Connection
from benchmarks.load.history import History
from benchmarks.load.page import Answer, Page, Record
from benchmarks.load.seen import Seen

Habit = Literal["clicks", "plays", "pastes", "reloads", "vanishes", "looks"]

CLASS: tuple[Habit, ...] = (
    "clicks",
    "plays",
    "clicks",
    "pastes",
    "clicks",
    "reloads",
    "clicks",
    "vanishes",
    "clicks",
    "clicks",
)
PROMPTS = ("The cat sat on the", "Once upon a time", "In the beginning", "My favourite number is", "To be or not to")
WORDS = ("the river", "under a bridge", "carries light", "and small boats", "while somebody", "on the bank", "counts")
ESSAY_PHRASES = 250  # some 600 tokens
ARTICLE_PHRASES = 420  # some 1,000
AWAY_S = 1.5
LAST_STEP = 250  # a run ends at 256 tokens; whoever gets near begins another
LOOK_EVERY_S = 0.1
LOADING_S = 180.0
PATIENCE_S = 30.0  # what has no answer by then is lost
READING_PATIENCE_S = 120.0  # the same for a prompt: the page shows how far it is, and a long one may take its time


@dataclass(frozen=True, slots=True)
class Plan:
    """What everybody does.

    every_s     mean time between two presses
    stepping    so many do as their habit says; the rest prefill and look
    together    everybody presses on the same beat, every `every_s`, as when a teacher says "now"
    play_rate   steps per second that autoplay is set to
    habit_every_s  between two essays pasted by one student, two reloads, two losses of the network
    counts_from, until   seconds of time.perf_counter: presses before are warming up, none come after
    """

    url: str
    seed: int
    stepping: int
    every_s: float
    together: bool
    play_rate: float
    habit_every_s: float
    counts_from: float
    until: float


class Student:
    """Runs until the plan's end, then waits for what is still under way."""

    def __init__(self, number: int, plan: Plan, seen: Seen, habit: Habit | None = None) -> None:
        own: Habit = CLASS[number % len(CLASS)] if number < plan.stepping else "looks"
        self.habit: Habit = habit or own
        self._plan = plan
        self._seen = seen
        self._random = random.Random(f"{plan.seed}/{number}")
        self._history = History(seen)
        self._page: Page | None = None
        self._pressing: set[asyncio.Future[Answer]] = set()
        self._drawn_at = 0.0
        self._habit_due = 0.0
        self._comes_back = True

    @property
    def page(self) -> Page:
        """The page that is open."""
        assert self._page is not None, "a student opens a page first"
        return self._page

    async def attend(self, starts_at: float) -> None:
        """From the first look at the page to the last answer."""
        await asyncio.sleep(max(0.0, starts_at - time.perf_counter()))
        try:
            await self._open()
            await self._prefill(self._random.choice(PROMPTS))
            await {"plays": self._play, "looks": self._look}.get(self.habit, self._press)()
            await self._settle()
        except Exception as error:  # one student's trouble is counted and nobody else's
            self._seen.error(type(error).__name__, str(error))

    async def warm_up(self, steps: int) -> None:
        """Open the page, which may load the model, read an essay, and step a few times."""
        await self._open(patience_s=LOADING_S)
        await self._prefill(self._essay())
        await self._prefill(PROMPTS[0])
        for _ in range(steps):
            await asyncio.wait_for(self._step(time.perf_counter()), PATIENCE_S)

    async def leave(self) -> None:
        """Close the tab."""
        if self._page is not None:
            self._keep_counts(self._page)
            await self._page.stop()
            await self._page.connection.close()

    # --- pressing -----------------------------------------------------------------------------------------

    async def _press(self) -> None:
        due = self._next(time.perf_counter())
        self._habit_due = due + self._random.random() * self._plan.habit_every_s
        while due < self._plan.until:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            self._complain()
            busy = await self._habit_now(due)
            if await self._begin_again_if_over() or busy:
                due = time.perf_counter()  # whoever did something else presses after it
            self._step(due)
            due = self._next(due)

    def _next(self, due: float) -> float:
        every = self._plan.every_s
        return (due // every + 1) * every if self._plan.together else due + every * self._random.uniform(0.5, 1.5)

    async def _play(self) -> None:
        """Let the server play, over and over; each step counts as a press that was answered at once."""
        while time.perf_counter() < self._plan.until:
            self.page.on_step, self._drawn_at = self._played, time.perf_counter()
            await self._ask("play", speed=self._plan.play_rate)
            while self.page.plays and len(self.page.steps) < LAST_STEP and time.perf_counter() < self._plan.until:
                await asyncio.sleep(LOOK_EVERY_S)
                self._complain()
            await self._ask("pause")
            await self._ask("select", layer=0, head=0)  # once it is answered no step is under way
            self.page.on_step = lambda *_: None
            await self._begin_again_if_over()

    def _played(self, record: Record, came: float) -> None:
        self._seen.pressed += 1
        self._history.played(int(record["index"]))
        if came >= self._plan.counts_from:
            self._seen.step(came, (came - self._drawn_at) * 1e3, record, autoplay=True)
        self._drawn_at = came

    async def _look(self) -> None:
        while time.perf_counter() < self._plan.until:
            await asyncio.sleep(LOOK_EVERY_S)
            self._complain()

    def _step(self, due: float) -> asyncio.Future[Answer]:
        future = self.page.send("step", asked=due)
        self._pressing.add(future)
        self._seen.pressed += 1
        future.add_done_callback(self._answered)
        return future

    def _answered(self, future: asyncio.Future[Answer]) -> None:
        self._pressing.discard(future)
        if future.cancelled():
            return
        answer = future.result()
        in_turn = self._history.answered(answer)
        if in_turn and answer.step is not None and answer.asked >= self._plan.counts_from:
            self._seen.step(answer.came, answer.seconds * 1e3, answer.step, autoplay=False)

    async def _begin_again_if_over(self) -> bool:
        steps = self.page.steps
        over = bool(steps) and (steps[-1]["finish_reason"] or len(steps) + len(self._pressing) >= LAST_STEP)
        if over:
            await self._wait()
            await self._prefill(self._random.choice(PROMPTS))
        return bool(over)

    # --- habits -------------------------------------------------------------------------------------------

    async def _habit_now(self, due: float) -> bool:
        if due < self._habit_due or self.habit == "clicks":
            return False
        self._habit_due = due + self._plan.habit_every_s
        if self.habit == "pastes":
            await self._wait()
            await self._prefill(self._essay())
        elif self.habit == "reloads":
            await self._reload()
        else:
            await self._vanish()
        return True

    async def _reload(self) -> None:
        """The tab remembers the session's name and recipe; the new page opens with them."""
        under_way, old = len(self._pressing), self.page
        session = old.session
        await self._drop(old)
        await old.connection.close()
        self._seen.reloads += 1
        if await self._open(session) == "new":
            self._seen.error("SessionLost", "a reload found no session")
            await self._prefill(self._random.choice(PROMPTS))
        else:
            self._history.resumed(self.page, under_way)

    async def _vanish(self) -> None:
        """The network goes without a word. Every other time it comes back; else somebody new sits down."""
        page = self.page
        self._seen.vanished += 1
        page.connection.vanish()
        if self._comes_back:
            await asyncio.sleep(AWAY_S * self._random.random())
            moved = page.move_to(await Connection.open(self._plan.url, after=page.connection))
            await asyncio.wait_for(moved, PATIENCE_S)
        else:
            await self._drop(page)
            await asyncio.sleep(AWAY_S)
            await self._open()
            await self._prefill(self._random.choice(PROMPTS))
        self._comes_back = not self._comes_back

    # --- parts --------------------------------------------------------------------------------------------

    async def _open(self, remembered: Mapping[str, Any] | None = None, *, patience_s: float = PATIENCE_S) -> str:
        """A new page; how its session began."""
        began = time.perf_counter()
        self._page = Page(await Connection.open(self._plan.url), remembered)
        how = await asyncio.wait_for(self.page.start(), patience_s)
        self._seen.opened_s.append(time.perf_counter() - began)
        return how

    async def _ask(self, op: str, **args: Any) -> None:
        answer = await asyncio.wait_for(self.page.send(op, **args), PATIENCE_S)
        if answer.error is not None:
            self._seen.error(*answer.error)

    async def _prefill(self, prompt: str) -> None:
        answer = await asyncio.wait_for(self.page.send("prefill", prompt=prompt, mode="raw"), READING_PATIENCE_S)
        if answer.error is not None:
            self._seen.error(*answer.error)
            return
        self._seen.first_s.append(answer.seconds)
        self._history.prefilled()

    def _essay(self) -> str:
        return " ".join(self._random.choices(WORDS, k=ESSAY_PHRASES))

    async def _drop(self, page: Page) -> None:
        """A page that is gone: nobody waits for its answers any more."""
        for future in tuple(self._pressing):
            future.cancel()
        self._pressing.clear()
        self._keep_counts(page)
        await page.stop()

    async def _wait(self) -> None:
        if self._pressing:
            await asyncio.wait(tuple(self._pressing), timeout=PATIENCE_S)

    async def _settle(self) -> None:
        await self._wait()
        self._complain()
        if self._pressing:
            self._seen.unanswered += len(self._pressing)
        else:
            self._history.settled(self.page)

    def _complain(self) -> None:
        if self.page.failure is not None:
            raise self.page.failure

    def _keep_counts(self, page: Page) -> None:
        self._seen.frame_bytes += page.frame_bytes
        self._seen.received_bytes += page.connection.bytes_received
        if page.session is not None and page.steps:
            sid = str(page.session["sid"])
            self._seen.kv_bytes[sid] = int(page.steps[-1]["memory"]["kv_reserved_bytes"])
