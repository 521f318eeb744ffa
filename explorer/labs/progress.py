"""Work that takes longer than a moment: begun by a button, watched by a bar, ended by another button.

The work runs on the engine's thread or another one of ours, never in the page's run: a rerun finds it again. It ends
with the tab. The result stays until other inputs are asked about.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import streamlit as st

from engine.errors import LoupeError
from explorer.hosting.connections import CONNECTIONS
from explorer.labs.shell import escaped
from explorer.pages import tab_names
from explorer.say import words_beside

say = words_beside(__file__)

log = logging.getLogger(__name__)

T = TypeVar("T")

REFRESH_S = 0.3
MOMENT_S = 0.25  # what is done by then never shows a bar


class TaskProgress(Protocol):
    """What the work calls between its pieces: how far it is, of how much, and what it is doing."""

    def __call__(self, done: int, total: int, words: str = "") -> None: ...


Begin = Callable[[TaskProgress], "Future[T]"]


class Stopped(LoupeError):
    """Somebody pressed Stop. Work that has something to show by then catches it and returns that."""


@dataclass(slots=True, eq=False)
class Job:
    """One piece of work under way, or done. `done` and `total` are in the work's own unit."""

    inputs: Hashable
    future: Future[Any] = field(default_factory=Future)
    words: str = ""
    done: int = 0
    total: int = 0
    is_stopped: bool = False
    began: float = field(default_factory=time.monotonic)

    def report(self, done: int, total: int, words: str = "") -> None:
        """Called by the work between its pieces. Raises Stopped once nobody wants the rest."""
        self.done, self.total, self.words = done, total, words or self.words
        if self.is_stopped:
            raise Stopped(say("progress.stopped", done=f"{done:,}", total=f"{total:,}"))

    @property
    def fraction(self) -> float:
        """How far it is, 0 to 1."""
        return min(1.0, self.done / self.total) if self.total else 0.0


@dataclass(slots=True, eq=False)
class Jobs:
    """This tab's work, by key."""

    by_key: dict[str, Job] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def stop_all(self) -> None:
        """Nobody is there any more. Never waits."""
        for job in list(self.by_key.values()):
            job.is_stopped = True


def _nothing() -> None:
    """What is shown while work is watched that has nothing to show."""


def task(
    key: str,
    label: str,
    begin: Begin[T],
    *,
    inputs: Hashable = None,
    again: str = say("progress.again"),
    is_primary: bool = False,
    meanwhile: Callable[[], None] = _nothing,
) -> T | None:
    """A button that begins work, its progress, and its result once there is one.

    key     names the work in this tab
    label   on the button
    begin   asks for the work and returns its Future; the work calls `report(done, total, words)` between pieces
    inputs  what the work depends on: a result for other inputs is not shown
    again   on the button beside a result
    is_primary  whether it is the one thing to do on the page, until there is a result
    meanwhile  what to show under the bar, drawn anew several times a second
    """
    jobs = _jobs()
    job = jobs.by_key.get(key)
    if job is not None and job.inputs != inputs:
        job.is_stopped = True
        del jobs.by_key[key]
        job = None
    with st.container(horizontal=True, vertical_alignment="center", key=f"{key}_task"):
        if st.button(
            escaped(again if job else label),
            key=f"{key}_begin",
            type="primary" if is_primary and job is None else "secondary",
            disabled=job is not None and not job.future.done(),
        ):
            jobs.by_key[key] = _begun(begin, inputs)
            st.rerun()
    if job is None:
        return None
    _wait_a_moment(job)
    if not job.future.done():
        _watch(key, meanwhile)
        return None
    result: T | None = _result(job)
    return result


def result_of(key: str, inputs: Hashable) -> Any | None:
    """What a task has found for these inputs, for a place on the page that comes before it. None: nothing yet."""
    job = _jobs().by_key.get(key)
    if job is None or job.inputs != inputs or not job.future.done() or job.future.exception() is not None:
        return None
    return job.future.result()


def _begun(begin: Begin[T], inputs: Hashable) -> Job:
    job = Job(inputs)
    try:
        job.future = begin(job.report)
    except LoupeError as error:
        job.future.set_exception(error)
    return job


def _result(job: Job) -> Any:
    error = job.future.exception()
    if error is None:
        return job.future.result()
    if isinstance(error, LoupeError):
        st.text(str(error))
    else:
        log.error("work of a lab failed", exc_info=error)
        st.text(say("progress.failed"))
    return None


def _wait_a_moment(job: Job) -> None:
    left = MOMENT_S - (time.monotonic() - job.began)
    while not job.future.done() and left > 0:
        time.sleep(0.02)
        left -= 0.02


@st.fragment(run_every=REFRESH_S)
def _watch(key: str, meanwhile: Callable[[], None]) -> None:
    job = _jobs().by_key.get(key)
    if job is None or job.future.done():
        st.rerun()
    with st.container(horizontal=True, vertical_alignment="center"):
        st.progress(job.fraction, _words(job))
        if st.button(say("progress.stop"), key=f"{key}_stop", disabled=job.is_stopped):
            job.is_stopped = True
    meanwhile()


def _words(job: Job) -> str:
    counted = (
        say("progress.counted", done=f"{job.done:,}", total=f"{job.total:,}") if job.total else say("progress.waiting")
    )
    now = say("progress.under_way", words=job.words, counted=counted).strip()
    return say("progress.stopping", now=now) if job.is_stopped else now


_all_jobs: dict[str, Jobs] = {}  # by owner; not in Streamlit's caches: those can be emptied


def _jobs() -> Jobs:
    """This tab's work. It ends when the tab's connection does."""
    owner = tab_names.owner()
    jobs = _all_jobs.setdefault(owner, Jobs())
    CONNECTIONS.keep(tab_names.connection(), ("jobs", owner), lambda: _let_go(owner))
    return jobs


def _let_go(owner: str) -> None:
    jobs = _all_jobs.pop(owner, None)
    if jobs is not None:
        jobs.stop_all()
